import type { AdminContext } from '../../../app/admin/declaration.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';
import { adminBuckets, rangeFilters } from '../../../app/admin/range.ts';
import type { AdminOverview } from '../../../app/admin/sections.ts';
import type { AdminRange } from '../../../app/admin/shapes.ts';
import { countKeys, COUNTED_KEYS_MAX, lastUsesByBucket } from './count-keys.ts';

const DAY_MS = 86_400_000;
const SOON_MS = 7 * DAY_MS;

/** The keys of an application at a glance. */
export async function keyOverview({ db, clock }: AdminContext, range: AdminRange): Promise<AdminOverview> {
  const now = clock.now();
  const buckets = adminBuckets(range, now);
  const soon = new Date(now.getTime() + SOON_MS);
  const counts = await countKeys(db, { since: buckets.since, until: buckets.until, now, soon });
  const bounded = counts.all < COUNTED_KEYS_MAX ? '' : ` Of the newest ${groupDigits(COUNTED_KEYS_MAX)} keys.`;
  const keys = (filters: Readonly<Record<string, string>>) => ({ resource: 'api-keys', filters });
  return {
    title: 'API keys',
    tiles: [
      {
        label: 'Active keys',
        value: counts.active,
        unit: 'count',
        tone: 'neutral',
        ...(bounded === '' ? {} : { hint: bounded.trim() }),
        link: keys({ state: 'active' }),
      },
      {
        label: 'Used',
        value: counts.used,
        unit: 'count',
        tone: 'info',
        hint: `Keys whose last use falls into the range.${bounded}`,
        link: keys(rangeFilters(buckets, now, ['used_since', 'used_before'])),
      },
      {
        label: 'Expire within 7 days',
        value: counts.expiring,
        unit: 'count',
        tone: counts.expiring > 0 ? 'warning' : 'neutral',
        hint: `Active keys that stop working soon unless their expiry is moved.${bounded}`,
        link: keys({ state: 'active', expires_before: soon.toISOString() }),
      },
      {
        label: 'Revoked',
        value: counts.revoked,
        unit: 'count',
        tone: 'neutral',
        hint: `In the range.${bounded}`,
        link: keys({ state: 'revoked', ...rangeFilters(buckets, now, ['revoked_since', 'revoked_before']) }),
      },
    ],
    charts: [
      {
        title: 'Keys by the time they were last used',
        kind: 'bars',
        unit: 'count',
        buckets: buckets.starts.map((start) => start.toISOString()),
        series: [{ name: 'Keys', tone: 'info', values: await lastUsesByBucket(db, buckets) }],
        empty: 'No key was used in this time.',
      },
    ],
    tables: [],
  };
}
