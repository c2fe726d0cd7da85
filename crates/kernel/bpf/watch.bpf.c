// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Decisions of the kernel's MPTCP, from its tracepoints, as events in a ring buffer. Nothing is changed. The
 * tracepoint of the scheduler tells the subflows that it looks at; the one that it takes shows in where data then go.
 */
#include "watch.h"

char licence_of_the_program[] SECTION("license") = "Dual MIT/GPL";

INLINE void begin(struct event *e, enum kind kind)
{
	__builtin_memset(e, 0, sizeof(*e));
	e->time = now();
	e->kind = kind;
	e->cpu = this_cpu();
}

INLINE void emit(struct event *e)
{
	u32 first = 0;
	u64 *counter;

	if (!ring_output(&ring, e, sizeof(*e), NO_WAKEUP))
		return;
	counter = map_lookup(&lost, &first);
	if (counter)
		__sync_fetch_and_add(counter, 1);
}

INLINE void tell_connection(struct event *e, const void *connection)
{
	const struct mptcp_sock *msk = AS(struct mptcp_sock, connection);
	const struct sock *sk = AS(struct sock, connection);

	e->token = msk->token;
	e->namespace = sk->__sk_common.skc_net.net->ns.inum;
	if (sk->sk_socket)
		e->inode = AS(struct socket_alloc, sk->sk_socket)->vfs_inode.i_ino;
	e->cgroup = sk->sk_cgrp_data.cgroup->kn->id;
	e->una = msk->snd_una;
	e->next = msk->snd_nxt;
}

INLINE void tell_subflow(struct event *e, const struct sock *socket)
{
	const struct sock_common *sk = &AS(struct sock, socket)->__sk_common;

	e->family = sk->skc_family;
	e->local_port = sk->skc_num;
	e->remote_port = __builtin_bswap16(sk->skc_dport);
	e->local[0] = sk->skc_rcv_saddr;
	e->remote[0] = sk->skc_daddr;
	if (e->family == IPV6) {
		e->local[0] = sk->skc_v6_rcv_saddr.in6_u.u6_addr32[0];
		e->local[1] = sk->skc_v6_rcv_saddr.in6_u.u6_addr32[1];
		e->local[2] = sk->skc_v6_rcv_saddr.in6_u.u6_addr32[2];
		e->local[3] = sk->skc_v6_rcv_saddr.in6_u.u6_addr32[3];
		e->remote[0] = sk->skc_v6_daddr.in6_u.u6_addr32[0];
		e->remote[1] = sk->skc_v6_daddr.in6_u.u6_addr32[1];
		e->remote[2] = sk->skc_v6_daddr.in6_u.u6_addr32[2];
		e->remote[3] = sk->skc_v6_daddr.in6_u.u6_addr32[3];
	}
}

/* True if the send buffer takes more (sk_stream_memory_free in include/net/sock.h). */
INLINE u64 is_free(const struct sock *sk, const struct tcp_sock *tp)
{
	u32 limit = tp->notsent_lowat, unsent = tp->write_seq - tp->snd_nxt;

	if (!limit)
		limit = sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_notsent_lowat;
	return sk->sk_wmem_queued < sk->sk_sndbuf && unsent < limit;
}

/* Values: pacing rate, its mean that the scheduler divides by [B/s], bytes queued, bytes sent, repeated, SRTT [us],
 * place of the next mapping in the subflow. */
SECTION("tp_btf/mptcp_subflow_get_send") int candidate(u64 *arguments)
{
	const struct mptcp_subflow_context *subflow = AS(struct mptcp_subflow_context, (void *)arguments[0]);
	const struct sock *sk = AS(struct sock, subflow->tcp_sock);
	const struct tcp_sock *tp = AS(struct tcp_sock, subflow->tcp_sock);
	/* Bits in some kernels, bytes in others. */
	u64 joins = BITS(subflow, request_join), stale = BITS(subflow, stale), complete = BITS(subflow, fully_established);
	u8 state = sk->__sk_common.skc_state;
	struct event e;

	begin(&e, CANDIDATE);
	tell_connection(&e, subflow->conn);
	tell_subflow(&e, sk);
	e.cwnd = tp->snd_cwnd;
	if ((state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT) && !stale && (!joins || complete))
		e.flags |= ACTIVE;
	if (BITS(subflow, backup) || BITS(subflow, request_bkup))
		e.flags |= BACKUP;
	if (is_free(sk, tp))
		e.flags |= FREE;
	if (stale)
		e.flags |= STALE;
	e.values[0] = sk->sk_pacing_rate;
	e.values[1] = subflow->avg_pacing_rate;
	e.values[2] = (u32)sk->sk_wmem_queued;
	e.values[3] = tp->bytes_sent;
	e.values[4] = tp->bytes_retrans;
	e.values[5] = tp->srtt_us >> 3;
	e.values[6] = subflow->rel_write_seq;
	emit(&e);
	return 0;
}

/* Values: the mapping's DSN, its place in the subflow, its length [B]. */
INLINE void mapping(enum kind kind, const void *extension)
{
	const struct mptcp_ext *mpext = AS(struct mptcp_ext, extension);
	struct event e;

	if (!BITS(mpext, use_map))
		return;
	begin(&e, kind);
	e.values[0] = mpext->data_seq;
	e.values[1] = mpext->subflow_seq;
	e.values[2] = mpext->data_len;
	e.values[3] = BITS(mpext, data_fin);
	emit(&e);
}

SECTION("tp_btf/mptcp_sendmsg_frag") int sent(u64 *arguments)
{
	mapping(SENT, (void *)arguments[0]);
	return 0;
}

SECTION("tp_btf/get_mapping_status") int arrived(u64 *arguments)
{
	mapping(MAPPING, (void *)arguments[0]);
	return 0;
}

/* Values: the DATA_ACK, the DSN acknowledged before and now, the end of the window that it gives, and the furthest that
 * any gave, this one included. */
SECTION("tp_btf/ack_update_msk") int acknowledged(u64 *arguments)
{
	struct event e;

	/* One that was overtaken says nothing new. Whether the window opened further, only the reader knows. */
	if ((s64)(arguments[2] - arguments[1]) <= 0 && arguments[3] != arguments[4])
		return 0;
	begin(&e, DATA_ACK);
	for (u32 i = 0; i < 5; i++)
		e.values[i] = arguments[i];
	emit(&e);
	return 0;
}

/* Values: enum mapping_status. */
SECTION("tp_btf/subflow_check_data_avail") int judged(u64 *arguments)
{
	const struct sk_buff *skb = AS(struct sk_buff, (void *)arguments[1]);
	const struct mptcp_subflow_context *subflow;
	const struct tcp_sock *tp;
	const struct sock *sk;
	struct event e;

	/* Without a packet nothing has arrived. */
	if (!arguments[1] || !skb->sk)
		return 0;
	sk = skb->sk;
	tp = AS(struct tcp_sock, sk);
	if (!tp->is_mptcp)
		return 0;
	subflow = AS(struct mptcp_subflow_context, AS(struct inet_connection_sock, sk)->icsk_ulp_data);
	begin(&e, STATUS);
	tell_connection(&e, subflow->conn);
	tell_subflow(&e, sk);
	e.values[0] = (u8)arguments[0];
	emit(&e);
	return 0;
}
