import type { AdminContext } from '../../app/admin/declaration.ts';
import { runShared } from '../../db/engine/long-statement.ts';
import type { AdminSite } from './admin-site.ts';
import { BoundedMap } from '../../db/values/bounded-map.ts';

/** Several people watching cost as much as one. */
const KEPT_MS = 5_000;
/** Keys that people chose, such as ranges of time, are many; the ones asked for last are kept. */
const KEYS_MAX = 16;

interface Kept<A> {
  /** Null while it is being made: requests that come meanwhile wait for the same answer, however long it takes. */
  at: number | null;
  readonly answer: Promise<A>;
}

/** An answer for everybody, made at most every few seconds for each key. */
export function keptAnswer<K extends string, A>(
  make: (site: AdminSite, context: AdminContext, key: K) => Promise<A>,
): (site: AdminSite, context: AdminContext, key: K) => Promise<A> {
  const kept = new WeakMap<AdminSite, BoundedMap<K, Kept<A>>>();
  return (site, context, key) => {
    const answers = kept.get(site) ?? new BoundedMap<K, Kept<A>>(KEYS_MAX, 'forget the oldest');
    kept.set(site, answers);
    const now = context.clock.now().getTime();
    const known = answers.get(key);
    if (known !== undefined && (known.at === null || (now >= known.at && now - known.at < KEPT_MS))) return known.answer;
    const making: Kept<A> = { at: null, answer: runShared(() => make(site, context, key)) };
    answers.renew(key, making);
    making.answer.then(
      () => (making.at = context.clock.now().getTime()),
      // A failure is the answer for the requests that waited for it, and not kept for later ones.
      () => answers.get(key) === making && answers.delete(key),
    );
    return making.answer;
  };
}
