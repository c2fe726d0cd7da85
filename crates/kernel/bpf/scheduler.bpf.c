// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A scheduler for the MPTCP of a Linux that takes schedulers from BPF (mptcp_sched_ops; in the developers' tree
 * mptcp_net-next, in no release yet). The decision is in the header that ALGORITHM names. A section struct_ops/MEMBER
 * is the program for that member.
 */
#include "core.h"
#include ALGORITHM

char licence_of_the_program[] SECTION("license") = "Dual MIT/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	unsigned char skc_state;
};
struct sock {
	struct sock_common __sk_common;
	int sk_sndbuf;
	int sk_wmem_queued;
};
struct inet_connection_sock {
	u8 icsk_ca_state : 5;
};
struct tcp_sock {
	u32 snd_cwnd;
	u32 snd_nxt;
	u32 write_seq;
	u32 srtt_us;
	u32 mdev_us;
	u32 mss_cache;
	u32 packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
};
struct mptcp_subflow_context {
	struct sock *tcp_sock;
	u32 request_bkup : 1;
	u32 backup : 1;
	u32 subflow_id;
};
struct mptcp_sock {
	u64 write_seq;
	u64 snd_nxt;
	u64 snd_una;
	u64 wnd_end;
};

#pragma clang attribute pop

struct bpf_iter_mptcp_subflow {
	u64 opaque[2];
} __attribute__((aligned(8)));

/*
 * Linux walks with two arguments. The third is for the iterator that stands in where this one does not exist, so that
 * the verifier there sees the rest.
 */
extern int bpf_iter_mptcp_subflow_new(struct bpf_iter_mptcp_subflow *it, struct mptcp_sock *connection,
				      u32 words) KFUNC;
extern void *bpf_iter_mptcp_subflow_next(struct bpf_iter_mptcp_subflow *it) KFUNC;
extern void bpf_iter_mptcp_subflow_destroy(struct bpf_iter_mptcp_subflow *it) KFUNC;
extern bool mptcp_subflow_active(void *subflow) KFUNC;
extern void mptcp_subflow_set_scheduled(void *subflow, bool scheduled) KFUNC;
extern void mptcp_set_timeout(struct mptcp_sock *connection) KFUNC;

/* Of each connection, its memory (BPF_MAP_TYPE_SK_STORAGE). */
extern struct memory memories;

static void *(*const storage)(void *map, void *socket, void *value, u64 flags) = (void *)107;
#define CREATE 1 /* BPF_SK_STORAGE_GET_F_CREATE */

#define TCP_CA_LOSS 4 /* a timeout is being repaired */
#define NOTHING (-22) /* -EINVAL, as Linux' own scheduler */

INLINE u32 narrow(u64 x)
{
	return smaller(x, ~0U);
}

/* A usable subflow. */
INLINE void look_at(struct path *p, const struct mptcp_subflow_context *subflow)
{
	const struct sock *sk = AS(struct sock, subflow->tcp_sock);
	const struct tcp_sock *tp = AS(struct tcp_sock, subflow->tcp_sock);
	const struct inet_connection_sock *icsk = AS(struct inet_connection_sock, subflow->tcp_sock);
	u64 packets = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	u64 queued = tp->write_seq - tp->snd_nxt, open;

	p->id = subflow->subflow_id;
	p->backup = BITS(subflow, backup) | BITS(subflow, request_bkup);
	p->srtt = tp->srtt_us;
	p->deviation = 2 * tp->mdev_us;
	p->mss = tp->mss_cache;
	p->window = narrow((u64)tp->snd_cwnd * p->mss);
	p->flight = narrow((packets & 0xffffffff) * p->mss + (queued & 0xffffffff));
	open = same(BITS(icsk, icsk_ca_state), TCP_CA_LOSS) ^ 1;
	open &= below((u32)sk->sk_wmem_queued, (u32)sk->sk_sndbuf);
	p->room = open & (below(p->window, (u64)p->flight + p->mss) ^ 1);
	p->counts = 1;
}

/* Fills in the paths. Backups count only if no regular subflow does. */
INLINE void look(struct moment *m, struct mptcp_sock *connection)
{
	const struct mptcp_sock *c = AS(struct mptcp_sock, connection);
	struct bpf_iter_mptcp_subflow it;
	u64 regular = 0;

	__builtin_memset(m, 0, sizeof(*m));
	m->now = now();
	m->unsent = c->write_seq - c->snd_nxt;
	m->window = c->wnd_end - c->snd_una;
	/* A window may shrink below what was sent. */
	m->sendable = (c->wnd_end - c->snd_nxt) & ~((s64)(c->wnd_end - c->snd_nxt) >> 63);
	m->sendable = smaller(m->unsent, m->sendable);
	bpf_iter_mptcp_subflow_new(&it, connection, 1);
	for (u64 i = 0; opaque(i) < SUBFLOWS; i++) {
		void *subflow = bpf_iter_mptcp_subflow_next(&it);
		struct path *p = &m->paths[opaque(i)];

		if (!subflow)
			break;
		if (!mptcp_subflow_active(subflow))
			continue;
		look_at(p, AS(struct mptcp_subflow_context, subflow));
		regular |= p->backup ^ 1;
	}
	bpf_iter_mptcp_subflow_destroy(&it);
	for (u64 i = 0; opaque(i) < SUBFLOWS; i++) {
		struct path *p = &m->paths[opaque(i)];

		p->counts &= (regular & p->backup) ^ 1;
	}
}

/* Marks the subflows of a set. */
INLINE int schedule(struct mptcp_sock *connection, u64 set)
{
	struct bpf_iter_mptcp_subflow it;

	if (!set)
		return NOTHING;
	bpf_iter_mptcp_subflow_new(&it, connection, 1);
	for (u64 i = 0; opaque(i) < SUBFLOWS; i++) {
		void *subflow = bpf_iter_mptcp_subflow_next(&it);

		if (!subflow)
			break;
		if (set >> opaque(i) & 1)
			mptcp_subflow_set_scheduled(subflow, 1);
	}
	bpf_iter_mptcp_subflow_destroy(&it);
	return 0;
}

/* The scheduler's decision, if there is something to decide. */
INLINE u64 chosen(const struct moment *m, struct memory *s)
{
	u64 roomy = fastest(m, 1), flight = 0, set;

	/* Linux probes a closed window by what it sends there. */
	if (!m->sendable) {
		if (roomy != SUBFLOWS)
			blocked(s, path_at(m, roomy)->id);
		return only(roomy);
	}
	set = decided(m, s);
	EACH_PATH(i, p, m)
		flight |= p->counts & any(p->flight);
	/* Nothing would end a wait. */
	return pick(any(set) | flight, set, only(roomy));
}

SECTION("struct_ops/get_send") int get_send(u64 *arguments)
{
	struct mptcp_sock *connection = (struct mptcp_sock *)arguments[0];
	struct memory *s = storage(&memories, connection, 0, CREATE);
	struct moment m;

	if (!s)
		return NOTHING;
	mptcp_set_timeout(connection);
	look(&m, connection);
	return schedule(connection, chosen(&m, s));
}

/* Data that were sent and not acknowledged for long: again, on the fastest subflow with nothing in flight. */
SECTION("struct_ops/get_retrans") int get_retrans(u64 *arguments)
{
	struct mptcp_sock *connection = (struct mptcp_sock *)arguments[0];
	struct moment m;
	u64 set = 0;

	look(&m, connection);
	for (u64 i = 0; opaque(i) < SUBFLOWS; i++) {
		struct path *p = &m.paths[opaque(i)];

		p->room &= any(p->flight) ^ 1;
		set |= (u64)(p->counts & p->room) << opaque(i);
	}
#ifndef EVERYWHERE
	set = only(fastest(&m, 1));
#endif
	return schedule(connection, set);
}
