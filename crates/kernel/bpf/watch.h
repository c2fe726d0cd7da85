/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The fields of Linux' structs that watch.bpf.c reads, moved by the kernel to where its own BTF has them, and the
 * events that it writes, which the reader has with the same layout in src/watch/event.rs.
 */
#ifndef AB_WATCH_H
#define AB_WATCH_H

#include "net.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	u32 skc_daddr, skc_rcv_saddr;
	u16 skc_dport, skc_num, skc_family;
	unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};
struct inode {
	unsigned long i_ino;
};
struct socket;
struct socket_alloc {
	struct inode vfs_inode;
};
struct kernfs_node {
	u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
};
struct sock_cgroup_data {
	struct cgroup *cgroup;
};
struct inet_connection_sock {
	void *icsk_ulp_data;
};
struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	int sk_wmem_queued, sk_sndbuf;
	unsigned long sk_pacing_rate;
	struct sock_cgroup_data sk_cgrp_data;
};
struct tcp_sock {
	u32 snd_cwnd, srtt_us, snd_nxt, write_seq, notsent_lowat;
	u64 bytes_sent, bytes_retrans;
	bool is_mptcp;
};
struct mptcp_subflow_context {
	unsigned long avg_pacing_rate;
	u32 rel_write_seq;
	u32 request_join : 1, request_bkup : 1, backup : 1, stale : 1;
	bool fully_established;
	struct sock *tcp_sock, *conn;
};
struct mptcp_sock {
	u32 token;
	u64 snd_una, snd_nxt;
};
struct mptcp_ext {
	u64 data_seq;
	u32 subflow_seq;
	u16 data_len;
	u8 use_map : 1, data_fin : 1;
};
struct sk_buff {
	struct sock *sk;
};

#pragma clang attribute pop

#define IPV6 10

/* A subflow that the scheduler looks at; data that a subflow is given; progress of the DATA_ACK; a mapping that
 * arrived; the judgment on what arrived. */
enum kind { CANDIDATE = 1, SENT, DATA_ACK, MAPPING, STATUS };

#define ACTIVE 1
#define BACKUP 2
#define FREE 4
#define STALE 8

struct event {
	u64 time; /* of the monotonic clock [ns] */
	u32 kind;
	u32 cpu;
	/* The connection, unless the tracepoint does not say: then `namespace` is 0. */
	u32 token;
	u32 namespace; /* number of the network namespace */
	u64 inode; /* of the socket that the program has; 0: none yet */
	u64 cgroup;
	u64 una, next; /* DSNs: acknowledged, next to be sent */
	/* The subflow; `family` is 0 for none. IPv4 addresses are the first word; ports are the host's numbers. */
	u32 family;
	u16 local_port, remote_port;
	u32 local[4], remote[4];
	u32 flags;
	u32 cwnd; /* [segments] */
	/* By kind: see the programs. */
	u64 values[8];
};

/* Helpers of the kernel by their numbers, further to those of core.h. */
static u32 (*const this_cpu)(void) = (void *)8;
static long (*const ring_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;

/* The reader looks by itself. */
#define NO_WAKEUP 1

/* The maps, which the loader makes: of a symbol only the name counts. `lost` has one counter. */
extern char ring, lost;

#endif
