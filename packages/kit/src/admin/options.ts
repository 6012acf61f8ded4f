import { type OptionRules, readOptions } from '../options/read-options.ts';
import { rule, text } from '../options/value-rule.ts';

export interface AdminOptions {
  /** Where the site is; `/admin` unless given. */
  readonly prefix?: `/${string}`;
  /** In the heading and the browser's tab; the application's title unless given. */
  readonly title?: string;
  /** The folder of a built browser application; the one in this package unless given. */
  readonly site?: URL;
}

export interface AdminSettings {
  readonly prefix: string;
  readonly title: string | null;
  readonly site: URL;
}

const rules: OptionRules<AdminOptions> = {
  prefix: rule(
    'a path such as "/admin", without a slash at its end',
    (value) => typeof value === 'string' && /^(?:\/[A-Za-z0-9._~-]+)+$/.test(value),
  ),
  title: text,
  site: rule('the URL of a folder, which ends with "/"', (value) => value instanceof URL && value.pathname.endsWith('/')),
};

/** Complete and frozen; every fault is reported at once. */
export function readAdminOptions(options: AdminOptions): AdminSettings {
  const { prefix = '/admin', title = null, site = new URL('./site/', import.meta.url) } = readOptions('admin()', options, rules);
  return Object.freeze({ prefix, title, site });
}
