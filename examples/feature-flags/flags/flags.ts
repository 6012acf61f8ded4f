import { moduleState } from 'kit';
import { list, type Clock, type Db } from 'kit/db';
import { featureFlags } from './models.ts';
import type { FlagSettings } from './options.ts';
import { isInRollout } from './rollout.ts';

/** What the plugin keeps in memory: its settings, and the table as it was a moment ago. */
export interface Flags {
  readonly settings: FlagSettings;
  readonly clock: Clock;
  percentages: ReadonlyMap<string, number>;
  readAtMs: number;
}

export const flagState = moduleState<Flags>({ name: 'Feature flags', setUp: 'add featureFlags() to the modules of createApp' });

/** A function of the plugin: works in a handler, in a command and in a job, with the handle or transaction it is given. */
export async function isFlagOn(db: Db, flag: string, userId: string | null): Promise<boolean> {
  const flags = flagState.of(db);
  if (!Object.hasOwn(flags.settings.flags, flag)) throw new TypeError(`There is no flag "${flag}". Declare it: featureFlags({ flags }).`);
  if (flags.settings.alwaysOn.has(flag)) return true;
  await refresh(db, flags);
  return isInRollout(flag, flags.percentages.get(flag) ?? 0, userId);
}

/** One statement per `refreshMs`, not one per request. */
async function refresh(db: Db, flags: Flags): Promise<void> {
  const now = flags.clock.now().getTime();
  if (now - flags.readAtMs < flags.settings.refreshMs) return;
  flags.readAtMs = now;
  const rows = await list(db, featureFlags, { limit: 1000 });
  flags.percentages = new Map(rows.map(({ name, percentage }) => [name, percentage]));
}
