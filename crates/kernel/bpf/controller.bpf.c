// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A congestion control for Linux (tcp_congestion_ops) that sees all subflows of its MPTCP connection. The arithmetic is
 * in the header that ALGORITHM names. A section struct_ops/MEMBER is the program for that member; with a gate, programs
 * of the sections gate/MEMBER come in addition, and in place of those for the same member.
 *
 * Linux lets only programs under a licence compatible with the GPL call its functions; "Dual MIT/GPL" is the one of its
 * words that comes closest to ours.
 */
#include "kernel.h"
#include ALGORITHM
#include "window.h"
#include "gate.h"

char licence_of_the_program[] SECTION("license") = "Dual MIT/GPL";

INLINE struct memory *memory_of(struct sock *sk)
{
	return &((struct own *)((struct inet_connection_sock *)sk)->icsk_ca_priv)->memory;
}

/* A subflow as others see it; SRTT stays 0 unless it is established and measured. */
INLINE void look_at(struct flow *f, const struct tcp_sock *tp, const struct inet_connection_sock *icsk, const void *ops)
{
	const struct memory *m = (const struct memory *)icsk->icsk_ca_priv;
	u8 tcp = ((const struct sock *)tp)->__sk_common.skc_state;
	u64 counts = same(tcp, TCP_ESTABLISHED) | same(tcp, TCP_CLOSE_WAIT);
	u64 repairs = same(BITS(icsk, icsk_ca_state) | 1, TCP_CA_RECOVERY);
	/* The memory of another congestion control says nothing. */
	u64 ours = -same((u64)icsk->icsk_ca_ops, (u64)ops);

	f->srtt = tp->srtt_us & -counts;
	f->window = pick(repairs, tp->snd_ssthresh, tp->snd_cwnd) << FRACTION | (m->fraction & ours);
	f->told = told(m) & -counts & ours;
}

/* The subflows of the connection; a plain TCP connection is one subflow. */
INLINE void look(struct view *v, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	const void *ops = icsk->icsk_ca_ops;
	struct mptcp_subflow_context *subflow;
	struct list_head *at, *head;

	__builtin_memset(v, 0, sizeof(*v));
	v->cwnd = (u64)tp->snd_cwnd << FRACTION | memory_of(sk)->fraction;
	if (!tp->is_mptcp) {
		look_at(v->flows, tp, icsk, ops);
		v->flows[0].self = 1;
		return;
	}
	head = &connection_of(sk)->conn_list;
	at = head->next;
	for (u64 i = 0; opaque(i) < SUBFLOWS; i++) {
		struct flow *f = &v->flows[opaque(i)];
		struct sock *other;

		if (!at || at == head)
			break;
		subflow = AS(struct mptcp_subflow_context,
			     (void *)at - __builtin_preserve_field_info(((struct mptcp_subflow_context *)0)->node, 0));
		other = subflow->tcp_sock;
		look_at(f, AS(struct tcp_sock, other), AS(struct inet_connection_sock, other), ops);
		f->self = same((u64)other, (u64)sk);
		at = subflow->node.next;
	}
}

#ifdef BY_ROUNDS
/* True if the end of a round set the window at this ACK; one that was no limit does not grow. */
INLINE u32 is_set(struct sock *sk, u32 ack, u32 is_limited)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct memory *m = memory_of(sk);
	struct windows w;
	struct view v;

	look(&v, sk);
	w.cwnd = v.cwnd;
	w.ssthresh = (u64)tp->snd_ssthresh << FRACTION;
	if (!decided(&v, m, ack, tp->snd_nxt, &w))
		return 0;
	tp->snd_ssthresh = w.ssthresh >> FRACTION;
	if (!is_limited)
		w.cwnd = smaller(w.cwnd, v.cwnd);
	m->fraction = w.cwnd;
	w.cwnd = smaller(w.cwnd >> FRACTION, tp->snd_cwnd_clamp);
	tp->snd_cwnd = w.cwnd;
	return 1;
}
#endif

#define TCP_NOTSENT_LOWAT 25
#define BURST 65428 /* MPTCP_SEND_BURST_SIZE */
#define WINDOWS_BUFFERED 8

/* True if its MPTCP connection has another subflow. */
INLINE u64 is_one_of_many(struct sock *sk)
{
	struct list_head *head, *first;

	if (!((struct tcp_sock *)sk)->is_mptcp)
		return 0;
	head = &connection_of(sk)->conn_list;
	first = head->next;
	return first && first != head && first->next != head;
}

/*
 * Linux' scheduler puts up to 64 kB into the least lingering queue, and while a subflow works that off with a small
 * window, others have nothing to send. So a subflow that has lost something takes no more while a segment waits unsent,
 * or what its window exceeds 64 kB by: a large one may open by more than a burst at a time. (With less than a segment,
 * Nagle's algorithm would hold up the end of each fragment.) Until its first loss it takes a burst, so that a short
 * transfer keeps to the faster path, or a window. Linux takes such a limit off a subflow as it joins. One that
 * never had another beside it, also of a connection that fell back to TCP, has what Linux gives it.
 */
INLINE void keep_short(struct sock *sk, u64 has_lost)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 mss = tp->mss_cache, window = tp->snd_cwnd * mss, beyond = window > BURST ? window - BURST : 0;
	u64 most = has_lost ? larger(mss, beyond) : larger(BURST, window), limit = tp->notsent_lowat;

	/* Not with each ACK: it costs more than the rest of the program. */
	if ((limit > most || limit < most / 2) && is_one_of_many(sk))
		set_number(sk, IPPROTO_TCP, TCP_NOTSENT_LOWAT, smaller(most, 0x7fffffff));
}

INLINE u64 has_lost(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_ssthresh < UNKNOWN;
}

SECTION("struct_ops/init") int init(u64 *arguments)
{
	keep_short((struct sock *)arguments[0], has_lost((struct sock *)arguments[0]));
	return 0;
}

/*
 * The connection's send buffer is the sum of its subflows'. It holds what fast subflows send while a fragment leaves by
 * a slow one, which are several windows. A subflow alone has Linux' two: Linux 6.18 loses what a larger buffer takes
 * before the first ACK if the application has closed its end and the connection then falls back to TCP.
 */
SECTION("struct_ops/sndbuf_expand") int sndbuf_expand(u64 *arguments)
{
	return is_one_of_many((struct sock *)arguments[0]) ? WINDOWS_BUFFERED : 2;
}

/* Growth after an ACK of `acked` segments. */
INLINE int grow(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct memory *m = memory_of(sk);
	u32 cwnd = tp->snd_cwnd, is_limited = BITS(tp, is_cwnd_limited);
	struct view v;
	u64 window;

	keep_short(sk, has_lost(sk));
	/* As Linux' tcp_is_cwnd_limited: in slow start the window may be twice of what was in flight. */
	if (cwnd < tp->snd_ssthresh)
		is_limited |= cwnd < 2 * tp->max_packets_out;
#ifdef BY_ROUNDS
	if (is_set(sk, ack, is_limited))
		return 0;
#endif
	if (!is_limited)
		return 0;
	if (cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return 0;
	}
	look(&v, sk);
	window = grown(&v, m, real(acked, 0));
	cwnd = window >> FRACTION;
	m->fraction = window;
	if (cwnd > tp->snd_cwnd_clamp)
		cwnd = tp->snd_cwnd_clamp;
	tp->snd_cwnd = cwnd;
	return 0;
}

SECTION("struct_ops/cong_avoid") int cong_avoid(u64 *arguments)
{
	return grow((struct sock *)arguments[0], arguments[1], arguments[2]);
}

SECTION("struct_ops/ssthresh") int ssthresh(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct memory *m = memory_of(sk);
	struct view v;
	u64 left;

	look(&v, sk);
	left = fallen(&v, m);
	lost(m);
	/* The window will be the threshold, so that nothing is lost but in the repair. */
	m->fraction = left;
	gate_of(sk)->repaired = 0;
	keep_short(sk, 1);
	return left >> FRACTION;
}

SECTION("struct_ops/pkts_acked") int pkts_acked(u64 *arguments)
{
	struct memory *m = memory_of((struct sock *)arguments[0]);
	const struct ack_sample *sample = (const struct ack_sample *)arguments[1];

	sampled(m, sample->rtt_us);
	m->since += sample->pkts_acked;
	return 0;
}

SECTION("struct_ops/undo_cwnd") int undo_cwnd(u64 *arguments)
{
	return tcp_reno_undo_cwnd((struct sock *)arguments[0]);
}

#ifdef BY_ROUNDS
INLINE void is_now(struct sock *sk, u8 state)
{
	struct memory *m = memory_of(sk);

	/* The way into a repair is `ssthresh`. */
	if (state == TCP_CA_OPEN && m->repairing)
		restart(m, 0);
}

SECTION("struct_ops/set_state") int set_state(u64 *arguments)
{
	is_now((struct sock *)arguments[0], arguments[1]);
	return 0;
}

SECTION("struct_ops/cwnd_event") int cwnd_event(u64 *arguments)
{
	struct memory *m = memory_of((struct sock *)arguments[0]);
	u32 event = arguments[1];

	if (event == CA_EVENT_CWND_RESTART)
		restart(m, m->repairing);
	if (event == CA_EVENT_LOSS)
		m->rate = 0;
	return 0;
}
#endif

SECTION("gate/init") int gate_init(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct gate *g = gate_of(sk);

	g->una = tp->snd_una;
	g->delivered = tp->delivered;
	g->lost = tp->lost;
	keep_short(sk, has_lost(sk));
	pace(sk);
	return 0;
}

SECTION("gate/in_ack_event") int gate_in_ack_event(u64 *arguments)
{
	pass((struct sock *)arguments[0]);
	return 0;
}

/* Linux gave this member other arguments before 6.10; the first has always been the socket. */
SECTION("gate/cong_control") int gate_cong_control(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct gate *g = gate_of(sk);
	u32 arrived = tp->delivered - g->delivered, is_new = tp->snd_una != g->una, is_lost = tp->lost != g->lost;
	u32 state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);

	g->una = tp->snd_una;
	g->delivered = tp->delivered;
	g->lost = tp->lost;
	if (state == TCP_CA_CWR || state == TCP_CA_RECOVERY)
		reduce(tp, g, arrived, is_new && !is_lost);
	else if (is_new)
		grow(sk, tp->snd_una, arrived);
	pace(sk);
	return 0;
}

SECTION("gate/set_state") int gate_set_state(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];

	end_reduction(sk, (u8)arguments[1]);
#ifdef BY_ROUNDS
	is_now(sk, arguments[1]);
#endif
	return 0;
}

/* The socket gets another congestion control, which need not know of the gate. */
SECTION("gate/release") int gate_release(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];

	gate_of(sk)->closed = 0;
	pace(sk);
	return 0;
}
