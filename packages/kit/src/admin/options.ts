import { implementationOf, type OptionRules, readOptions } from '../options/read-options.ts';
import { aFunction, oneOf, recordOf, required, rule, text } from '../options/value-rule.ts';
import type { User } from '../auth/principal.ts';

export interface AdminOptions {
  /** Where the site is. Default: `/admin`. */
  readonly prefix?: `/${string}`;
  /** In the heading and the browser's tab. Default: the application's title. */
  readonly title?: string;
  /** The folder of a built browser application. Default: the one in this package. */
  readonly site?: URL;
  /** What members of staff may do. Default: everything. Superusers may do everything. */
  readonly roles?: AdminRoles;
}

/** `read_only` looks, `operator` also runs actions that can be taken back, `administrator` also creates, edits, deletes and runs the others. */
export type AdminRole = (typeof ADMIN_ROLES)[number];
const ADMIN_ROLES = ['read_only', 'operator', 'administrator'] as const;

export interface AdminRoles {
  of(user: User): AdminRole | Promise<AdminRole>;
  /** By list and operation (`read`, `create`, `update`, `remove`, `export`, `import`, or the name of an action), where the usual role is not the right one. */
  readonly needs?: Readonly<Record<string, Readonly<Record<string, AdminRole>>>>;
}

export interface AdminSettings {
  readonly prefix: string;
  readonly title: string | null;
  readonly site: URL;
  readonly roles: AdminRoles | null;
}

const rules: OptionRules<AdminOptions> = {
  prefix: rule(
    'a path such as "/admin", without a slash at its end',
    (value) => typeof value === 'string' && /^(?:\/[A-Za-z0-9._~-]+)+$/.test(value),
  ),
  title: text,
  site: rule('the URL of a folder, which ends with "/"', (value) => value instanceof URL && value.pathname.endsWith('/')),
  // The names of lists and operations are checked once the lists are known.
  roles: implementationOf<AdminRoles>('roles: { of: (user) => role }', {
    of: required(aFunction),
    needs: recordOf(recordOf(oneOf(...ADMIN_ROLES))),
  }),
};

/** Complete and frozen; every fault is reported at once. */
export function readAdminOptions(options: AdminOptions): AdminSettings {
  const given = readOptions('admin()', options, rules);
  const { prefix = '/admin', title = null, site = new URL('./site/', import.meta.url), roles = null } = given;
  return Object.freeze({ prefix, title, site, roles });
}
