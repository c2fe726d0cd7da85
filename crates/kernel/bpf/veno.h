/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Veno (Fu and Liew 2003): NewReno that takes a loss for random while few packets are queued. */
#include "backlog.h"

INLINE s64 growth(const struct view *v, const struct memory *m, number acked)
{
	return fixed(times(veno_increase(v, m, alone(v)), acked), FRACTION);
}

INLINE u64 threshold(const struct view *v, const struct memory *m)
{
	return veno_threshold(v, m);
}
