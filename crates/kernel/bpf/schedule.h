/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Input and memory of a scheduler: the subflows of one connection at the moment when data wait. Common parts of all
 * schedulers. A decision is a set of subflows, one bit for each place; the empty set waits.
 */
#ifndef AB_SCHEDULE_H
#define AB_SCHEDULE_H

#include "number.h"

/* Subflows that are looked at; Linux allows no more (MPTCP_SUBFLOWS_MAX). */
#define SUBFLOWS 8

/* Usable subflows stand in the order of their ids. */
struct path {
	u32 srtt; /* [1/8 us] */
	u32 deviation; /* RTTVAR [1/8 us] */
	u32 window; /* congestion window [bytes] */
	u32 flight; /* in flight, or queued for it [bytes] */
	u32 mss; /* [bytes] */
	u32 id;
	u8 counts; /* 1: usable */
	u8 room; /* 1: a full segment may leave now */
	u8 backup; /* 1: no regular subflow is usable */
};

struct moment {
	u64 now; /* [ns], never 0 */
	u64 unsent; /* [bytes] */
	u64 sendable; /* of these, what the peer's window admits [bytes] */
	u64 window; /* of the peer, from the first byte that is not acknowledged [bytes] */
	struct path paths[SUBFLOWS];
};

/* Memory of one connection. All zero at first. */
struct memory {
	u64 since; /* last correction; 0: none yet [ns] */
	s32 steps; /* corrections of the estimate, up less down */
	u32 fast; /* id of the fastest subflow, plus 1; 0: none yet */
	u32 turn; /* id with the next turn, or if it is not usable, the next */
	u8 blocked; /* the peer's window blocked the fastest subflow since the last correction */
	u8 waiting; /* decided to wait for the fastest */
};

/* Visits all places; those of no subflow do not count. */
#define EACH_PATH(i, p, m)                                          \
	for (u64 i = 0; opaque(i) < SUBFLOWS; i++)                  \
		for (const struct path *p = &(m)->paths[opaque(i)]; p; p = (void *)0)

/* The subflow at a place, which need not be one. */
INLINE const struct path *path_at(const struct moment *m, u64 place)
{
	return &m->paths[opaque(place) & (SUBFLOWS - 1)];
}

/* The place of the fastest subflow, or with `roomy` of the fastest with room; SUBFLOWS if there is none. */
INLINE u64 fastest(const struct moment *m, u64 roomy)
{
	u64 least = 1ULL << 62, place = SUBFLOWS;

	EACH_PATH(i, p, m) {
		u64 better = p->counts & (p->room | (roomy ^ 1)) & below(p->srtt, least);

		least = pick(better, p->srtt, least);
		place = pick(better, i, place);
	}
	return place;
}

/* The place of the next subflow with room by turns, which then has had its turn; SUBFLOWS if there is none. */
INLINE u64 next_turn(const struct moment *m, struct memory *s)
{
	u64 later = SUBFLOWS, earlier = SUBFLOWS, place;

	EACH_PATH(i, p, m) {
		u64 fits = p->counts & p->room, past = below(p->id, s->turn);

		later = pick(fits & (past ^ 1) & same(later, SUBFLOWS), i, later);
		earlier = pick(fits & past & same(earlier, SUBFLOWS), i, earlier);
	}
	place = pick(same(later, SUBFLOWS), earlier, later);
	s->turn = pick(same(place, SUBFLOWS), s->turn, path_at(m, place)->id + 1);
	return place;
}

/* The set of one place; the empty one for SUBFLOWS. */
INLINE u64 only(u64 place)
{
	return 1ULL << (place & 63) & ((1ULL << SUBFLOWS) - 1);
}

/*
 * Returns nonzero if nothing is to be weighed between a slow subflow and the fastest: that has room, or nothing is in
 * flight on it, so that no acknowledgment would end a wait.
 */
INLINE u64 is_plain(const struct path *fast, u64 fast_at, u64 slow_at)
{
	return same(fast_at, slow_at) | (any(fast->flight) ^ 1);
}

/* The peer's window forbade a subflow with room to send. */
INLINE void blocked(struct memory *s, u32 id)
{
	s->blocked |= same(s->fast, (u64)id + 1);
}

#endif
