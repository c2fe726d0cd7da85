// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Pure ACKs of one subflow on the path of another, and back (J. Cheng, J. Hwang, A. Tang, Acceleration of Multipath TCP
 * by Letting ACKs Take the Shortest Path, IEEE Sarnoff Symposium 2019).
 *
 * `tcx/egress` gives an ACK the addresses of the chosen path and leaves it its ports, by which `tcx/ingress` of the
 * other host finds the subflow and puts the addresses back. A subflow is known once its SYN or SYN/ACK with MPTCP has
 * left. An ACK moves only while the loader says that the other host restores it.
 */
#include "acks.h"

char licence_of_the_program[] SECTION("license") = "Dual MIT/GPL";

#define TCP 6
#define FIN 1
#define SYN 2
#define RST 4
#define ACK 16
#define OTHERS (FIN | SYN | RST | 32)

#define MPTCP 30
#define DSS 2
/* Of a DSS: a mapping, the end of data. */
#define MAPPING 0x14

#define SECOND 1000000000ull
/* With nothing heard for so long, repeated data says that our ACKs do not arrive: a quarter of Linux' shortest RTO. */
#define SILENCE (SECOND / 20)
/* Without a packet for so long, a subflow that still seems open is gone. */
#define FORGOTTEN (120 * SECOND)
/* Every so manieth ACK keeps its path, so that what remembers connections there does not forget it. */
#define SOMETIMES 16

/* A TCP packet without fragments, IP options and extension headers. */
struct packet {
	struct address source, destination;
	struct ports ports;
	u32 family;
	/* Length of the IP header, of the TCP options, and of the data [bytes]. */
	u32 header, options, length;
	u32 sequence, acknowledgement;
	u8 flags;
};

#define TO_HOST16(value) __builtin_bswap16(value)
#define TO_HOST32(value) __builtin_bswap32(value)

INLINE void count(u32 which)
{
	u64 *counter = map_lookup(&counters, &which);

	if (counter)
		__sync_fetch_and_add(counter, 1);
}

/* Reads the headers; false if it is no packet of the kind above. */
INLINE int read(struct __sk_buff *skb, struct packet *p)
{
	u8 ip[40], tcp[20];
	u32 total, offset;

	__builtin_memset(p, 0, sizeof(*p));
	/* The smallest TCP packet has 40 bytes in IPv4, and more in IPv6. */
	if (load(skb, 0, ip, sizeof(ip), FROM_NETWORK_HEADER))
		return 0;
	if (skb->protocol == TO_HOST16(0x0800)) {
		if (ip[0] != 0x45 || ip[9] != TCP || (ip[6] & 0x3f) || ip[7])
			return 0;
		p->family = 4;
		p->header = 20;
		__builtin_memcpy(&p->source, ip + 12, 4);
		__builtin_memcpy(&p->destination, ip + 16, 4);
		total = (u32)ip[2] << 8 | ip[3];
	} else if (skb->protocol == TO_HOST16(0x86dd)) {
		if (ip[6] != TCP)
			return 0;
		p->family = 6;
		p->header = 40;
		__builtin_memcpy(&p->source, ip + 8, 16);
		__builtin_memcpy(&p->destination, ip + 24, 16);
		total = ((u32)ip[4] << 8 | ip[5]) + 40;
	} else {
		return 0;
	}
	if (load(skb, p->header, tcp, sizeof(tcp), FROM_NETWORK_HEADER))
		return 0;
	offset = (tcp[12] >> 4) * 4;
	if (offset < 20)
		return 0;
	p->options = offset - 20;
	/* A packet that segmentation offload has joined may be longer than its header can say; it has data. */
	p->length = total >= p->header + offset ? total - p->header - offset : 1;
	p->flags = tcp[13];
	__builtin_memcpy(&p->ports.local, tcp, 2);
	__builtin_memcpy(&p->ports.remote, tcp + 2, 2);
	p->ports.family = p->family;
	__builtin_memcpy(&p->sequence, tcp + 4, 4);
	p->sequence = TO_HOST32(p->sequence);
	__builtin_memcpy(&p->acknowledgement, tcp + 8, 4);
	p->acknowledgement = TO_HOST32(p->acknowledgement);
	return 1;
}

/* MPTCP in the options: nothing, DSS that only acknowledges, or anything else. */
enum mptcp { NONE, ACKNOWLEDGES, MESSAGE };

/* Without branches, both of which the verifier would follow at each option. */
INLINE enum mptcp look(struct __sk_buff *skb, const struct packet *p)
{
	u8 options[68];
	u64 length = opaque(p->options), at = 0, live = 1, message = 0, acknowledges = 0;

	if (length < 4 || length > 40)
		return NONE;
	__builtin_memset(options, 0, sizeof(options));
	if (load(skb, p->header + 20, options, length, FROM_NETWORK_HEADER))
		return MESSAGE;
	for (u32 turn = 0; turn < 40; turn++) {
		const u8 *option = options + (opaque(at) & 63);
		u64 padding = same(option[0], 1);
		u64 size = pick(padding, 1, option[1]);
		u64 bad = (1 - any(size)) | (same(size, 1) & (1 - padding));
		u64 only = same(option[2] >> 4, DSS) & (1 - any(option[3] & MAPPING));
		u64 here;

		live &= below(at, length) & any(option[0]);
		here = live & same(option[0], MPTCP);
		message |= (live & bad) | (here & (1 - only));
		acknowledges |= here & only;
		live &= 1 - bad;
		at += size & -live;
	}
	if (opaque(message))
		return MESSAGE;
	return opaque(acknowledges) ? ACKNOWLEDGES : NONE;
}

INLINE int is_pure_ack(const struct packet *p)
{
	return !p->length && (p->flags & (ACK | OTHERS)) == ACK;
}

INLINE int is_same(const struct address *a, const struct address *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1] && a->words[2] == b->words[2] &&
	       a->words[3] == b->words[3];
}

/* The path over this device between these addresses; `number` says which it is. */
INLINE struct path *path_between(struct __sk_buff *skb, u32 family, const struct address *local,
				 const struct address *remote, u32 *number)
{
	for (u64 i = 0; i < PATHS; i++) {
		/* Linux 6.12 loses count of what it hands to a helper. */
		u32 key = opaque(i);
		struct path *path = map_lookup(&paths, &key);

		if (!path)
			break;
		if (path->family == family && path->ifindex == skb->ifindex && is_same(&path->local, local) &&
		    is_same(&path->remote, remote)) {
			*number = i;
			return path;
		}
	}
	return 0;
}

/* Gives a packet other addresses, and its checksums what they take; zero if all went well. */
INLINE long readdress(struct __sk_buff *skb, u32 at, const struct packet *p, struct address *source,
		      struct address *destination)
{
	u32 from[8], to[8], sum;
	long difference_of;

	if (p->family == 4) {
		from[0] = p->source.words[0];
		from[1] = p->destination.words[0];
		to[0] = source->words[0];
		to[1] = destination->words[0];
		difference_of = difference(from, 8, to, 8, 0);
		if (difference_of < 0 || replace_l4(skb, at + 20 + 16, 0, difference_of, PSEUDO_HEADER))
			return -1;
		if (replace_l3(skb, at + 10, 0, difference_of, 0))
			return -1;
		return store(skb, at + 12, to, 8, 0);
	}
	__builtin_memcpy(from, &p->source, 16);
	__builtin_memcpy(from + 4, &p->destination, 16);
	__builtin_memcpy(to, source, 16);
	__builtin_memcpy(to + 4, destination, 16);
	difference_of = difference(from, 32, to, 32, 0);
	if (difference_of < 0)
		return -1;
	sum = difference_of;
	/* Kernels before 6.16 do not know that flag, and do without it where the card has not summed the packet. */
	if (replace_l4(skb, at + 40 + 16, 0, sum, PSEUDO_HEADER | OF_IPV6) &&
	    replace_l4(skb, at + 40 + 16, 0, sum, PSEUDO_HEADER))
		return -1;
	return store(skb, at + 8, to, 32, 0);
}

/* A connection without MPTCP begins with these ports: the subflow that has them is over, or not alone with them. */
INLINE void take_ports(const struct packet *p, u32 number)
{
	struct flow *known = map_lookup(&flows, &p->ports);

	if (!known)
		return;
	if (known->path == number)
		known->closed = 1;
	else
		known->ambiguous = 1;
}

/* Enters the subflow whose SYN or SYN/ACK leaves. */
INLINE void enter(const struct packet *p, u32 number, u64 time)
{
	struct flow fresh, *known = map_lookup(&flows, &p->ports);

	if (known && known->path == number) {
		/* Its SYN again, or a later connection on the same path. */
		known->closed = 0;
		known->used = time;
		known->keep = 0;
		known->next = 0;
		known->told = p->acknowledgement;
		known->heard = 0;
		known->begun = 0;
		return;
	}
	if (known && !known->closed && time - known->used < FORGOTTEN) {
		known->ambiguous = 1;
		return;
	}
	__builtin_memset(&fresh, 0, sizeof(fresh));
	fresh.path = number;
	fresh.used = time;
	fresh.told = p->acknowledgement;
	map_update(&flows, &p->ports, &fresh, 0);
}

/* True if this ACK is to keep its path, for the sake of caution. */
INLINE int keeps(struct flow *flow)
{
	if (flow->keep) {
		flow->keep--;
	} else if (flow->away + 1 < SOMETIMES) {
		flow->away++;
		return 0;
	}
	flow->away = 0;
	return 1;
}

/* Returns nonzero if ACKs of this subflow may move. */
INLINE int is_open(const struct flow *flow, const struct ports *ports, u64 time)
{
	u64 *until = map_lookup(&agreements, ports);

	return until && time < *until && !flow->ambiguous && time >= flow->barred;
}

/* Keeps the subflow's ACKs at home: for a second at first, each time twice as long, up to a minute. */
INLINE void bar(struct flow *flow, u64 time)
{
	u32 times = flow->bars > 6 ? 6 : flow->bars;

	/* Signs of ACKs that were under way together are one. */
	if (time < flow->barred)
		return;
	flow->barred = time + (SECOND << times);
	flow->bars++;
	count(BARRED);
}

SECTION("tcx/egress")
int leave(struct __sk_buff *skb)
{
	u32 number = 0, chosen;
	struct packet p;
	struct path *own, *other;
	struct choice *choice;
	struct flow *flow;
	u64 time;
	u32 at;

	if (!read(skb, &p))
		return PASS;
	own = path_between(skb, p.family, &p.source, &p.destination, &number);
	if (!own)
		return PASS;
	time = now();
	if (p.flags & SYN) {
		if (look(skb, &p) != NONE)
			enter(&p, number, time);
		else
			take_ports(&p, number);
		return PASS;
	}
	flow = map_lookup(&flows, &p.ports);
	if (!flow)
		return PASS;
	if (flow->path != number) {
		/* A pure ACK may have come from another device a moment ago, and a RST may answer a forgery. */
		if (!is_pure_ack(&p) && !(p.flags & RST))
			flow->ambiguous = 1;
		return PASS;
	}
	flow->used = time;
	flow->begun = 1;
	/* The first ACK of the host that began comes after a SYN that acknowledged nothing. */
	if (p.flags & ACK && (!flow->heard || (s32)(p.acknowledgement - flow->told) > 0))
		flow->told = p.acknowledgement;
	if (p.flags & (FIN | RST))
		flow->closed = 1;
	if (!is_pure_ack(&p))
		return PASS;
	choice = map_lookup(&choices, &number);
	if (!choice || time >= choice->until || choice->path == number) {
		flow->away = 0;
		return PASS;
	}
	chosen = choice->path;
	other = map_lookup(&paths, &chosen);
	if (!other || other->family != p.family || !is_open(flow, &p.ports, time) || look(skb, &p) == MESSAGE ||
	    (choice->caution && keeps(flow))) {
		count(KEPT);
		return PASS;
	}
	at = own->ethernet ? 14 : 0;
	if (readdress(skb, at, &p, &other->local, &other->remote))
		return DROP;
	count(MOVED);
	if (!other->ethernet)
		return redirect(other->ifindex, 0);
	/* The kernel writes the header for the neighbour, into the place of one that is there. */
	if (!own->ethernet && change_head(skb, 14, 0))
		return DROP;
	return redirect_neighbour(other->ifindex, 0, 0, 0);
}

/*
 * Data of the other host. If it repeats what was acknowledged, the ACK may not have arrived; if it fills a gap, it has
 * heard of the gap.
 */
INLINE void hear(struct flow *flow, const struct packet *p, u64 time)
{
	u32 end = p->sequence + p->length;
	u64 silent = time - flow->heard;

	if (!flow->heard || (s32)(end - flow->next) > 0) {
		flow->next = end;
	} else if ((s32)(end - flow->told) <= 0) {
		/* After a silence, and with ACKs away, these did not arrive. */
		if (flow->away && silent > SILENCE && is_open(flow, &p->ports, time))
			bar(flow, time);
		flow->keep = 2;
	}
	flow->heard = time;
}

SECTION("tcx/ingress")
int arrive(struct __sk_buff *skb)
{
	u32 number = 0, chosen, at;
	struct packet p;
	struct path *there, *own;
	struct flow *flow;
	u16 local;

	if (!read(skb, &p))
		return PASS;
	there = path_between(skb, p.family, &p.destination, &p.source, &number);
	if (!there)
		return PASS;
	local = p.ports.remote;
	p.ports.remote = p.ports.local;
	p.ports.local = local;
	flow = map_lookup(&flows, &p.ports);
	if (!flow || flow->ambiguous)
		return PASS;
	if (flow->path == number) {
		if (p.length && !(p.flags & SYN))
			hear(flow, &p, now());
		/* A forged one ends the detour only. */
		if (p.flags & RST)
			flow->closed = 1;
		return PASS;
	}
	if (!flow->begun)
		return PASS;
	if (p.flags & RST) {
		/* The other host does not know our ACKs there. A forged one spoils the detour only. */
		bar(flow, now());
		count(REFUSED);
		return DROP;
	}
	if (!is_pure_ack(&p))
		return PASS;
	chosen = flow->path;
	own = map_lookup(&paths, &chosen);
	if (!own || own->family != p.family)
		return PASS;
	at = there->ethernet ? 14 : 0;
	if (readdress(skb, at, &p, &own->remote, &own->local))
		return DROP;
	count(RESTORED);
	if (own->ifindex == skb->ifindex)
		return PASS;
	/* It comes in where it would have come in, so that reverse path filters let it pass. */
	if (own->ethernet) {
		u8 header[14];

		if (!there->ethernet && change_head(skb, 14, 0))
			return DROP;
		__builtin_memset(header, 0, sizeof(header));
		__builtin_memcpy(header, own->mac, 6);
		header[12] = p.family == 4 ? 0x08 : 0x86;
		header[13] = p.family == 4 ? 0x00 : 0xdd;
		if (store(skb, 0, header, sizeof(header), 0))
			return DROP;
	}
	return redirect(own->ifindex, TO_INGRESS);
}
