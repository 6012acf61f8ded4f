import { type OptionRules, readOptions } from '../options/read-options.ts';
import { guard, instanceOf, rule, text } from '../options/value-rule.ts';
import { Permission } from '../permissions/permission.ts';

export interface PortalOptions {
  /** Where the portal is. Default: `/portal`. */
  readonly prefix?: `/${string}`;
  /** In the heading and the browser's tab. Default: the application's title. */
  readonly title?: string;
  /** Who may change things: `hasRole('developer')`. Others look, and change nothing. Default: everyone, as far as the operations of the API allow it. */
  readonly canManage?: Permission;
  /** The folder of a built browser application. Default: the one in this package. */
  readonly site?: URL;
}

export interface PortalSettings {
  readonly prefix: string;
  readonly title: string | null;
  /** Null: everyone. */
  readonly canManage: Permission | null;
  readonly site: URL;
}

const rules: OptionRules<PortalOptions> = {
  prefix: rule(
    'a path such as "/portal", without a slash at its end',
    (value) => typeof value === 'string' && /^(?:\/[A-Za-z0-9._~-]+)+$/.test(value),
  ),
  title: text,
  canManage: guard(instanceOf(Permission, "a permission, such as hasRole('developer')")),
  site: rule('the URL of a folder, which ends with "/"', (value) => value instanceof URL && value.pathname.endsWith('/')),
};

/** Complete and frozen; every fault is reported at once. */
export function readPortalOptions(options: PortalOptions): PortalSettings {
  const given = readOptions('portal()', options, rules);
  const { prefix = '/portal', title = null, canManage = null, site = new URL('../admin/site/', import.meta.url) } = given;
  return Object.freeze({ prefix, title, canManage, site });
}
