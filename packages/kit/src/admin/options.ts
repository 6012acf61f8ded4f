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

const KNOWN: readonly (keyof AdminOptions)[] = ['prefix', 'title', 'site'];

/** Complete and frozen; every fault is reported at once. */
export function readAdminOptions(options: AdminOptions): AdminSettings {
  const { prefix = '/admin', title = null, site = new URL('./site/', import.meta.url) } = options;
  const faults = Object.keys(options)
    .filter((name) => !(KNOWN as readonly string[]).includes(name))
    .map((name) => `${name} is not an option; the options are ${KNOWN.join(', ')}.`);
  if (!/^(?:\/[A-Za-z0-9._~-]+)+$/.test(prefix))
    faults.push(`prefix is ${JSON.stringify(prefix)}; use a path such as "/admin", without a slash at its end.`);
  if (!site.pathname.endsWith('/')) faults.push('site is no folder: its address ends with "/".');
  if (faults.length > 0) throw new TypeError(`admin(): ${faults.join(' ')}`);
  return Object.freeze({ prefix, title, site });
}
