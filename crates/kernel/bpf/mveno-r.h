/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mVeno, reconstructed: Veno with the linked increase of LIA. */
#include "backlog.h"
#include "linked.h"

INLINE s64 growth(const struct view *v, const struct memory *m, number acked)
{
	return fixed(times(veno_increase(v, m, linked_increase(v)), acked), FRACTION);
}

INLINE u64 threshold(const struct view *v, const struct memory *m)
{
	return veno_threshold(v, m);
}
