import type { Db } from '../../db/engine/db.ts';
import type { Standing, StandingQuestion, Standings } from './standing.ts';

/** Enough that a few that hang delay the others by seconds, and too few to take all connections. */
const AT_THE_SAME_TIME = 8;

/**
 * Each standing by itself. They are asked together; where that fails one by one, so that the tenant of one person, which cannot be asked, does not
 * decide for all others.
 */
export async function settledStandings(
  standings: Standings,
  db: Db,
  asked: readonly StandingQuestion[],
): Promise<readonly PromiseSettledResult<Standing>[]> {
  const [together] = await Promise.allSettled([standings.of(db, asked)]);
  if (together.status === 'fulfilled') return together.value.map((value) => ({ status: 'fulfilled', value }));
  if (asked.length === 1) return [together];
  const questions = [...new Map(asked.map((each) => [keyOf(each), each])).values()];
  const settled = new Map<string, PromiseSettledResult<Standing>>();
  for (let from = 0; from < questions.length; from += AT_THE_SAME_TIME) {
    const part = questions.slice(from, from + AT_THE_SAME_TIME);
    const found = await Promise.allSettled(part.map((each) => standingOf(standings, db, each)));
    for (const [index, each] of part.entries()) settled.set(keyOf(each), found[index] ?? together);
  }
  return asked.map((each) => settled.get(keyOf(each)) ?? together);
}

function keyOf({ userId, tenant, principal }: StandingQuestion): string {
  return JSON.stringify([principal?.scheme ?? null, userId, tenant]);
}

async function standingOf(standings: Standings, db: Db, asked: StandingQuestion): Promise<Standing> {
  const [standing] = await standings.of(db, [asked]);
  return standing ?? { ok: false, why: 'not_known' };
}
