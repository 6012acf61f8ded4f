import { implementationOf, objectOf, type OptionRules, readOptions } from '../options/read-options.ts';
import { aFunction, flag, guard, milliseconds, oneOf, recordOf, required, rule, text } from '../options/value-rule.ts';
import type { User } from '../auth/people/principal.ts';

export interface AdminOptions {
  /** Where the site is. Default: `/admin`. */
  readonly prefix?: `/${string}`;
  /** In the heading and the browser's tab. Default: the application's title. */
  readonly title?: string;
  /** The folder of a built browser application. Default: the one in this package. */
  readonly site?: URL;
  /** What members of staff may do. Default: everything. Superusers may do everything. */
  readonly roles?: AdminRoles;
  /**
   * Administrators can look at the application as one of its users: for 30 minutes, with a reason, and reading only. They need a second factor and a recent
   * login. Default: false.
   */
  readonly viewAs?: boolean;
  /** Sends the alerts of the overview to the log, to metrics and as events. Default: they are only shown. */
  readonly alerts?: AdminAlerts;
}

/** Who hears of alerts, and how often they are checked. */
export interface AdminAlerts {
  /** One process of all checks the overview this often. Default: 60,000. */
  readonly everyMs?: number;
  /**
   * Whose webhook endpoints get `alert.fired` and `alert.resolved`: the id of a user, or a tenant of your own. Default: no event is published. Alerts are
   * about the whole system, so they are never broadcast.
   */
  readonly audience?:
    | {
        /** The id of a user. */
        readonly owner: string;
      }
    | {
        /** A tenant. */
        readonly tenantKey: string;
      };
}

/** `read_only` looks, `operator` also runs actions that can be taken back, `administrator` also creates, edits, deletes and runs the others. */
export type AdminRole = (typeof ADMIN_ROLES)[number];
export const ADMIN_ROLES = ['read_only', 'operator', 'administrator'] as const;

export interface AdminRoles {
  /** The role of a member of staff. */
  of(user: User): AdminRole | Promise<AdminRole>;
  /** By list and operation (`read`, `create`, `update`, `remove`, `export`, `import`, `share`, or the name of an action), where the usual role is not the right one. */
  readonly needs?: Readonly<Record<string, Readonly<Record<string, AdminRole>>>>;
}

export interface AdminSettings {
  readonly prefix: string;
  readonly title: string | null;
  readonly site: URL;
  readonly roles: AdminRoles | null;
  readonly viewAs: boolean;
  /** Null: not sent. */
  readonly alerts: (Required<Pick<AdminAlerts, 'everyMs'>> & Pick<AdminAlerts, 'audience'>) | null;
}

const rules: OptionRules<AdminOptions> = {
  prefix: rule(
    'a path such as "/admin", without a slash at its end',
    (value) => typeof value === 'string' && /^(?:\/[A-Za-z0-9._~-]+)+$/.test(value),
  ),
  title: text,
  site: rule('the URL of a folder, which ends with "/"', (value) => value instanceof URL && value.pathname.endsWith('/')),
  // The names of lists and operations are checked once the lists are known.
  roles: guard(
    implementationOf<AdminRoles>('roles: { of: (user) => role }', {
      of: required(aFunction),
      needs: guard(recordOf(recordOf(oneOf(...ADMIN_ROLES)))),
    }),
  ),
  viewAs: flag,
  alerts: objectOf<AdminAlerts>({
    everyMs: milliseconds(1_000),
    audience: rule('{ owner: userId } or { tenantKey }', isAudience),
  }),
};

function isAudience(value: unknown): boolean {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  const [[name, key] = ['', '']] = entries;
  return entries.length === 1 && (name === 'owner' || name === 'tenantKey') && typeof key === 'string' && key !== '' && key.length <= 255;
}

/** Complete and frozen; every fault is reported at once. */
export function readAdminOptions(options: AdminOptions): AdminSettings {
  const given = readOptions('admin()', options, rules);
  const { prefix = '/admin', title = null, site = new URL('./site/', import.meta.url), roles = null, viewAs = false, alerts } = given;
  return Object.freeze({ prefix, title, site, roles, viewAs, alerts: alerts === undefined ? null : { everyMs: 60_000, ...alerts } });
}
