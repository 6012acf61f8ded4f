import { type OptionRules, readOptions } from '../options/read-options.ts';
import { rule, text } from '../options/value-rule.ts';

export interface PortalOptions {
  /** Where the portal is. Default: `/portal`. */
  readonly prefix?: `/${string}`;
  /** In the heading and the browser's tab. Default: the application's title. */
  readonly title?: string;
  /** The folder of a built browser application. Default: the one in this package. */
  readonly site?: URL;
}

export interface PortalSettings {
  readonly prefix: string;
  readonly title: string | null;
  readonly site: URL;
}

const rules: OptionRules<PortalOptions> = {
  prefix: rule(
    'a path such as "/portal", without a slash at its end',
    (value) => typeof value === 'string' && /^(?:\/[A-Za-z0-9._~-]+)+$/.test(value),
  ),
  title: text,
  site: rule('the URL of a folder, which ends with "/"', (value) => value instanceof URL && value.pathname.endsWith('/')),
};

/** Complete and frozen; every fault is reported at once. */
export function readPortalOptions(options: PortalOptions): PortalSettings {
  const { prefix = '/portal', title = null, site = new URL('../admin/site/', import.meta.url) } = readOptions('portal()', options, rules);
  return Object.freeze({ prefix, title, site });
}
