/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A gate before a subflow (experiment). Linux' scheduler passes over a subflow whose pacing rate is 0, and nothing but
 * the congestion control sets that rate if it has `cong_control`. A map tells for a local address until when its
 * subflows are closed; whoever wants them closed for longer has to write there again, so that gates open by themselves
 * when nobody does.
 *
 * A closed subflow with nothing in flight hears no more of its data. So it sends a keepalive probe each second, and
 * every ACK, also one that acknowledges nothing, comes past the gate.
 *
 * With `cong_control`, Linux leaves the window during a repair to the congestion control: proportional rate reduction
 * (RFC 6937, section 3).
 */
#ifndef AB_GATE_H
#define AB_GATE_H

#include "kernel.h"
#include "view.h"

/* Subflows of a place are closed until a time of the monotonic clock [ns]. */
struct place {
	u32 namespace; /* number of the network namespace */
	u32 family;
	u32 address[4]; /* of this host, in network order; the first word for IPv4 */
};
extern u64 gates;

/* Memory of the gate of one subflow, behind the congestion control's. All zero at first. */
struct gate {
	u32 una, delivered, lost; /* at the last ACK that acknowledged something */
	u32 repaired; /* segments that arrived since the repair began */
	u16 idle, interval; /* of keepalive probes before it was closed [s] */
	u8 probes, keeps; /* the most of them, and whether there were any */
	u8 closed;
};

struct own {
	struct memory memory;
	struct gate gate;
};

_Static_assert(sizeof(struct own) <= 104, "icsk_ca_priv is larger");

INLINE struct gate *gate_of(struct sock *sk)
{
	return &((struct own *)((struct inet_connection_sock *)sk)->icsk_ca_priv)->gate;
}

#define SOL_SOCKET 1
#define SO_KEEPALIVE 9
#define IPPROTO_TCP 6
#define TCP_KEEPIDLE 4
#define TCP_KEEPINTVL 5
#define TCP_KEEPCNT 6
#define MOST_PROBES 127 /* that a socket may set without an answer; the system's default may be more */
#define MOST_SECONDS 32767 /* between them, likewise */
#define IPV4 2
#define IPV6 10
#define INITIAL_WINDOW 10 /* RFC 6928 */
#define UNKNOWN 0x7fffffff /* TCP_INFINITE_SSTHRESH */

/* True for an IPv4 address in an IPv6 socket, which stands in the socket's place for IPv4 as well. */
INLINE u64 is_ipv4(const struct in6_addr *address)
{
	const u32 *words = address->in6_u.u6_addr32;

	return !words[0] && !words[1] && words[2] == __builtin_bswap32(0xffff);
}

/* True while the map says that subflows with this one's local address are closed. */
INLINE u64 is_barred(const struct sock *sk, u64 time)
{
	const struct sock_common *common = &sk->__sk_common;
	struct place place = { .namespace = common->skc_net.net->ns.inum, .family = common->skc_family };
	u64 *until;

	place.address[0] = common->skc_rcv_saddr;
	if (place.family == IPV6 && is_ipv4(&common->skc_v6_rcv_saddr)) {
		place.family = IPV4;
	} else if (place.family == IPV6) {
		place.address[0] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[0];
		place.address[1] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[1];
		place.address[2] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[2];
		place.address[3] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[3];
	}
	until = map_lookup(&gates, &place);
	return until && *until > time;
}

/* True if the scheduler may take this other subflow: it is none that waits for a timeout, and has no gate. */
INLINE u64 can_carry(const struct mptcp_subflow_context *subflow, u64 time)
{
	const struct sock *sk = AS(struct sock, subflow->tcp_sock);
	const struct inet_connection_sock *icsk = AS(struct inet_connection_sock, subflow->tcp_sock);
	u8 state = sk->__sk_common.skc_state;

	if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT)
		return 0;
	if (BITS(subflow, backup) || BITS(subflow, request_bkup) || BITS(subflow, stale))
		return 0;
	/* Bits in some kernels, bytes in others. */
	if (BITS(subflow, request_join) && !BITS(subflow, fully_established))
		return 0;
	return !icsk->icsk_retransmits && !is_barred(sk, time);
}

/* True if the connection has another subflow that can carry its data. */
INLINE u64 has_other(struct sock *sk, u64 time)
{
	struct list_head *head = &connection_of(sk)->conn_list, *at = head->next;
	struct mptcp_subflow_context *subflow;

	for (u64 i = 0; opaque(i) < SUBFLOWS; i++) {
		if (!at || at == head)
			break;
		subflow = AS(struct mptcp_subflow_context,
			     (void *)at - __builtin_preserve_field_info(((struct mptcp_subflow_context *)0)->node, 0));
		if (subflow->tcp_sock != sk && can_carry(subflow, time))
			return 1;
		at = subflow->node.next;
	}
	return 0;
}

INLINE int set_number(struct sock *sk, int level, int option, int value)
{
	return set_option(sk, level, option, &value, sizeof(value));
}

INLINE int number_of(struct sock *sk, int level, int option)
{
	int value = 0;

	get_option(sk, level, option, &value, sizeof(value));
	return value;
}

/* Sets keepalive probes; true if there are any from now on. */
INLINE u64 probe(struct sock *sk, int keeps, int idle, int interval, int probes)
{
	if (set_number(sk, IPPROTO_TCP, TCP_KEEPIDLE, idle) || set_number(sk, IPPROTO_TCP, TCP_KEEPINTVL, interval))
		return 0;
	if (set_number(sk, IPPROTO_TCP, TCP_KEEPCNT, probes))
		return 0;
	return !set_number(sk, SOL_SOCKET, SO_KEEPALIVE, keeps);
}

/* Closes a subflow, if it is sure that its gate will be passed again; keeps it closed, if the program has meanwhile set
 * probes of its own. */
INLINE void shut(struct sock *sk, struct gate *g)
{
	int keeps = number_of(sk, SOL_SOCKET, SO_KEEPALIVE), idle = number_of(sk, IPPROTO_TCP, TCP_KEEPIDLE);
	int interval = number_of(sk, IPPROTO_TCP, TCP_KEEPINTVL), probes = number_of(sk, IPPROTO_TCP, TCP_KEEPCNT);

	if (g->closed && keeps && idle == 1 && interval == 1)
		return;
	if (!g->closed || !keeps)
		g->keeps = keeps;
	if (!g->closed || idle != 1)
		g->idle = smaller(idle, MOST_SECONDS);
	if (!g->closed || interval != 1)
		g->interval = smaller(interval, MOST_SECONDS);
	if (!g->closed || probes != MOST_PROBES)
		g->probes = smaller(probes, MOST_PROBES);
	g->closed = probe(sk, 1, 1, 1, MOST_PROBES);
}

/* Opens it. What has idled begins with the initial window (RFC 5681, section 4.1). */
INLINE void open(struct sock *sk, struct gate *g)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	g->closed = 0;
	probe(sk, g->keeps, g->idle, g->interval, g->probes);
	if (!tp->packets_out && tp->snd_cwnd > INITIAL_WINDOW) {
		tp->snd_ssthresh = larger(tp->snd_ssthresh, tp->snd_cwnd - tp->snd_cwnd / 4);
		tp->snd_cwnd = INITIAL_WINDOW;
	}
}

/* The rate that Linux gives a socket by its window: twice of it in slow start, else 6/5, per round trip [B/s]. */
INLINE u64 usual_rate(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 window = larger(tp->snd_cwnd, tp->packets_out), rate = window * tp->mss_cache * 8000000;

	if (tp->srtt_us)
		rate /= tp->srtt_us;
	return tp->snd_cwnd < tp->snd_ssthresh / 2 ? rate * 2 : rate / 5 * 6;
}

INLINE void pace(struct sock *sk)
{
	u64 rate = gate_of(sk)->closed ? 0 : usual_rate(sk), most = sk->sk_max_pacing_rate;

	/* Without a limit it is beyond what `smaller` compares. */
	sk->sk_pacing_rate = rate < most ? rate : most;
}

/* At every ACK: closes or opens the gate. */
INLINE void pass(struct sock *sk)
{
	struct gate *g = gate_of(sk);
	u64 time = now(), shuts = 0;

	if (((struct tcp_sock *)sk)->is_mptcp && is_barred(AS(struct sock, sk), time))
		shuts = has_other(sk, time);
	if (shuts)
		shut(sk, g);
	else if (g->closed)
		open(sk, g);
	else
		return;
	pace(sk);
}

/* The window while a loss is repaired, or after a mark of congestion. */
INLINE void reduce(struct tcp_sock *tp, struct gate *g, u64 arrived, u64 is_plain)
{
	u64 flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	u64 threshold = tp->snd_ssthresh, before = tp->prior_cwnd, out = tp->prr_out, may;

	if (!arrived || !before)
		return;
	flight &= 0xffffffff;
	g->repaired += arrived;
	if (flight > threshold) {
		/* Sent in proportion to what arrived: threshold / before, rounded up. */
		may = (threshold * g->repaired + before - 1) / before;
		may = may > out ? may - out : 0;
	} else {
		may = g->repaired > out ? g->repaired - out : 0;
		may = smaller(larger(may, arrived) + is_plain, threshold - flight);
	}
	/* The first repetition goes out in any case. */
	if (!out)
		may = larger(may, 1);
	tp->snd_cwnd = larger(flight + may, 1);
}

/* The window is the threshold once a reduction is over, unless it turned out to be for nothing. */
INLINE void end_reduction(struct sock *sk, u64 next)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);

	if (next > TCP_CA_DISORDER || tp->snd_ssthresh >= UNKNOWN)
		return;
	if (state == TCP_CA_CWR || (state == TCP_CA_RECOVERY && tp->undo_marker))
		tp->snd_cwnd = tp->snd_ssthresh;
}

#endif
