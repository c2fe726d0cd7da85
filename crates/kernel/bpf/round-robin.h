/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The subflows take turns; one without room is passed over. */
#include "schedule.h"

INLINE u64 decided(const struct moment *m, struct memory *s)
{
	return only(next_turn(m, s));
}
