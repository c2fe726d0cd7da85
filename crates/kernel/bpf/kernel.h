/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The few fields of Linux' structs that the controllers touch. The kernel itself moves every access to where its own
 * BTF has the field (CO-RE, since 5.17), so the order here means nothing.
 */
#ifndef AB_KERNEL_H
#define AB_KERNEL_H

#include "number.h"

#define SECTION(name) __attribute__((section(name), used))
#define KFUNC __attribute__((section(".ksyms")))

typedef _Bool bool;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next;
};
struct sock_common {
	unsigned char skc_state;
};
struct sock {
	struct sock_common __sk_common;
};
struct inet_connection_sock {
	const void *icsk_ca_ops;
	void *icsk_ulp_data;
	u8 icsk_ca_state : 5;
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
	u8 is_cwnd_limited : 1;
	bool is_mptcp;
};
struct mptcp_subflow_context {
	struct list_head node;
	struct sock *tcp_sock;
	struct sock *conn;
};
struct mptcp_sock {
	struct list_head conn_list;
};
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
};

#pragma clang attribute pop

/* States of a socket, and of its congestion control (include/net/tcp_states.h, include/uapi/linux/tcp.h). */
#define TCP_ESTABLISHED 1
#define TCP_CLOSE_WAIT 8
#define TCP_CA_RECOVERY 3 /* and 2, a reduction without a loss */

extern void *bpf_rdonly_cast(const void *object, u32 type) KFUNC;
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) KFUNC;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) KFUNC;

/* The kernel's own pointer at `p` as a `type`, for reading: a bad address reads as 0, never as a fault. */
#define AS(type, p) ((type *)bpf_rdonly_cast((p), __builtin_btf_type_id(*(type *)0, 1)))

/* Reads a field of bits. */
#define BITS(s, field)                                                                          \
	({                                                                                      \
		const void *at = (const void *)(s) + __builtin_preserve_field_info((s)->field, 0); \
		u64 bits = 0;                                                                   \
		switch (__builtin_preserve_field_info((s)->field, 1)) {                         \
		case 1:                                                                         \
			bits = *(const volatile u8 *)at;                                        \
			break;                                                                  \
		case 2:                                                                         \
			bits = *(const volatile unsigned short *)at;                            \
			break;                                                                  \
		case 4:                                                                         \
			bits = *(const volatile u32 *)at;                                       \
			break;                                                                  \
		case 8:                                                                         \
			bits = *(const volatile u64 *)at;                                       \
			break;                                                                  \
		}                                                                               \
		bits <<= __builtin_preserve_field_info((s)->field, 4);                          \
		bits >> __builtin_preserve_field_info((s)->field, 5);                           \
	})

#endif
