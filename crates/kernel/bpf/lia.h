/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LIA (RFC 6356): all subflows together grow like one TCP on the best path. */
#include "linked.h"

INLINE s64 growth(const struct view *v, const struct memory *m, number acked)
{
	return fixed(times(linked_increase(v), acked), FRACTION);
}

INLINE u64 threshold(const struct view *v, const struct memory *m)
{
	return v->cwnd / 2;
}
