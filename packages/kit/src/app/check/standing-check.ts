import type { Check } from '../declare/check.ts';
import type { App } from '../declare/module.ts';

const REASONS = {
  undeclared: 'createApp() has `tenant` without `membership` or `memberships`',
  credential: '`membership` reads the claims or the tenant of a credential',
} as const;

/** For modules whose work outlives requests: an app with tenants must be able to say who is still a member, or its operator must know. */
export const standingCheck: Check<App> = {
  name: 'standing',
  async run({ db, registry, hasTenants }) {
    if (!hasTenants) return [];
    const source = await registry.standings.membershipSource(db);
    if (source === 'asked' || source === 'not_known') return [];
    const effects = [
      ...(registry.events === null ? [] : ['webhook endpoints of former members receive events of the tenant until they are deleted']),
      ...(registry.jobs === null ? [] : ['jobs with `actsForOwner` do not run in a tenant']),
      'API keys are not affected, because `tenant` is asked with each of their requests',
    ];
    return [
      {
        id: 'W031',
        message: `${REASONS[source]}, so workers cannot ask whether a user is still a member: ${effects.join('; ')}.`,
        hint: "Add `memberships: (db, asked) => …`. If only access tokens contain memberships, set `memberships: 'not known'`.",
      },
    ];
  },
};
