/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Of Linux' structs, those of network namespaces and addresses, moved by the kernel as in kernel.h. */
#ifndef AB_NET_H
#define AB_NET_H

#include "core.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	u32 inum;
};
struct netns_ipv4 {
	unsigned int sysctl_tcp_notsent_lowat;
};
struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

#pragma clang attribute pop

#endif
