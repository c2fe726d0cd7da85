/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The few fields of Linux' structs that the controllers touch. The kernel itself moves every access to where its own
 * BTF has the field (CO-RE, since 5.17), so the order here means nothing.
 */
#ifndef AB_KERNEL_H
#define AB_KERNEL_H

#include "net.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next;
};
struct sock_common {
	unsigned char skc_state;
	u16 skc_family;
	u32 skc_rcv_saddr;
	struct in6_addr skc_v6_rcv_saddr;
	possible_net_t skc_net;
};
struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
};
struct inet_connection_sock {
	const void *icsk_ca_ops;
	void *icsk_ulp_data;
	u8 icsk_ca_state : 5;
	u8 icsk_retransmits;
	u64 icsk_ca_priv[13];
};
struct tcp_sock {
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_clamp;
	u32 snd_nxt;
	u32 snd_una;
	u32 srtt_us;
	u32 max_packets_out;
	u32 packets_out, sacked_out, lost_out, retrans_out;
	u32 delivered, lost, prior_cwnd, prr_out, undo_marker, mss_cache, notsent_lowat;
	u8 is_cwnd_limited : 1;
	bool is_mptcp;
};
struct mptcp_subflow_context {
	struct list_head node;
	struct sock *tcp_sock;
	struct sock *conn;
	u32 request_join : 1, request_bkup : 1, backup : 1, stale : 1;
	bool fully_established;
};
struct mptcp_sock {
	struct list_head conn_list;
};
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
};

#pragma clang attribute pop

/* The connection of a subflow. */
INLINE struct mptcp_sock *connection_of(const struct sock *sk)
{
	const void *context = ((const struct inet_connection_sock *)sk)->icsk_ulp_data;

	return AS(struct mptcp_sock, AS(struct mptcp_subflow_context, context)->conn);
}

/* States of a socket's congestion control (include/uapi/linux/tcp.h). */
#define TCP_CA_OPEN 0
#define TCP_CA_DISORDER 1
#define TCP_CA_CWR 2
#define TCP_CA_RECOVERY 3 /* and CWR, a reduction without a loss */

/* Events that a congestion control is told of beside ACKs (include/net/tcp.h): restart after idling, first timeout. */
#define CA_EVENT_CWND_RESTART 1
#define CA_EVENT_LOSS 3

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) KFUNC;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) KFUNC;

#endif
