// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Gives the TCP sockets of a control group, subflows of MPTCP included, the congestion control that a map names, as
 * their connections are established: before the congestion control begins.
 */
#include "core.h"

char licence_of_the_program[] SECTION("license") = "Dual MIT/GPL";

/* Only the first field is read (include/uapi/linux/bpf.h). */
struct bpf_sock_ops {
	u32 op;
};

/* BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB and BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB. */
#define CONNECTED 4
#define ACCEPTED 5
#define IPPROTO_TCP 6
#define TCP_CONGESTION 13
#define TCP_CA_NAME_MAX 16

/* One entry: the name, with its NUL. */
extern char name;

SECTION("sockops/established") int established(struct bpf_sock_ops *event)
{
	u32 first = 0;
	char *chosen;

	if (event->op != CONNECTED && event->op != ACCEPTED)
		return 1;
	chosen = map_lookup(&name, &first);
	if (chosen)
		set_option(event, IPPROTO_TCP, TCP_CONGESTION, chosen, TCP_CA_NAME_MAX);
	return 1;
}
