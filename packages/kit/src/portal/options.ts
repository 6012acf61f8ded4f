import { pageAddress } from '../app/declare/login-provider.ts';
import { isOrigin } from '../http/declare/origin.ts';
import { objectOf, type OptionRules, readOptions } from '../options/read-options.ts';
import { filledText, guard, instanceOf, listOf, required, rule, text } from '../options/value-rule.ts';
import { Permission } from '../permissions/permission.ts';

export interface PortalOptions {
  /** Where the portal is. Default: `/portal`. */
  readonly prefix?: `/${string}`;
  /** In the heading and the browser's tab. Default: the application's title. */
  readonly title?: string;
  /** Who may change things: `hasRole('developer')`. Others look, and change nothing. Default: everyone, as far as the operations of the API allow it. */
  readonly canManage?: Permission;
  /** A picture in the heading: a path of this site, such as `/logo.svg`. Default: that of the toolkit. */
  readonly logo?: `/${string}`;
  /** The color of buttons and links. Default: that of the admin site. */
  readonly colors?: PortalColors;
  /** How numbers and times are written: `de`. Default: as the browser says. */
  readonly locale?: string;
  /** Your own links, in the menu: the documentation, the status page. */
  readonly links?: readonly PortalOwnLink[];
  /** Origins of pages that show the portal in a frame, with `<kit-portal>`: `['https://app.example.com']`. Default: none may. */
  readonly embedIn?: readonly string[];
  /** The folder of a built browser application. Default: the one in this package. */
  readonly site?: URL;
}

export interface PortalColors {
  /** On light surfaces: `#3f56c4`. */
  readonly accent?: string;
  /** On dark surfaces: `#a3b1f2`. Default: that of the admin site. */
  readonly accentDark?: string;
}

/** A link of the application in the menu. */
export interface PortalOwnLink {
  /** In the menu. */
  readonly label: string;
  /** A path of this site, or an http(s) URL. */
  readonly href: string;
}

export interface PortalSettings {
  readonly prefix: string;
  readonly title: string | null;
  /** Null: everyone. */
  readonly canManage: Permission | null;
  readonly logo: string | null;
  readonly colors: PortalColors;
  readonly locale: string | null;
  readonly links: readonly PortalOwnLink[];
  readonly embedIn: readonly string[];
  readonly site: URL;
}

/** Surfaces that the color is read on: the page, and white text on a button. */
const LIGHT = ['#ffffff', '#f6f7f9'];
const DARK = ['#181b20', '#121519'];
const readable = (surfaces: readonly string[], example: string) =>
  rule(
    `a color such as "${example}" with a contrast of 4.5 or more against ${surfaces.join(' and ')}, so that everyone can read it`,
    (value) => typeof value === 'string' && /^#[0-9a-f]{6}$/i.test(value) && surfaces.every((surface) => contrast(value, surface) >= 4.5),
  );

const rules: OptionRules<PortalOptions> = {
  prefix: rule(
    'a path such as "/portal", without a slash at its end',
    (value) => typeof value === 'string' && /^(?:\/[A-Za-z0-9._~-]+)+$/.test(value),
  ),
  title: text,
  canManage: guard(instanceOf(Permission, "a permission, such as hasRole('developer')")),
  logo: rule('a path such as "/logo.svg"', (value) => typeof value === 'string' && /^\/(?![/\\])\S*$/.test(value)),
  colors: objectOf<PortalColors>({ accent: readable(LIGHT, '#3f56c4'), accentDark: readable(DARK, '#a3b1f2') }),
  locale: rule('a locale such as "de"', (value) => typeof value === 'string' && isLocale(value)),
  links: listOf(objectOf<PortalOwnLink>({ label: required(filledText), href: required(pageAddress) })),
  embedIn: guard(listOf(rule('an origin such as "https://app.example.com"', isOrigin))),
  site: rule('the URL of a folder, which ends with "/"', (value) => value instanceof URL && value.pathname.endsWith('/')),
};

/** Complete and frozen; every fault is reported at once. */
export function readPortalOptions(options: PortalOptions): PortalSettings {
  const given = readOptions('portal()', options, rules);
  const { prefix = '/portal', title = null, canManage = null, logo = null, colors = {}, locale = null, links = [], embedIn = [] } = given;
  const { site = new URL('../admin/site/', import.meta.url) } = given;
  return Object.freeze({ prefix, title, canManage, logo, colors, locale, links, embedIn, site });
}

function isLocale(text: string): boolean {
  try {
    return Intl.getCanonicalLocales(text).length === 1;
  } catch {
    return false;
  }
}

/** WCAG 2.2, 1.4.3. */
function contrast(a: string, b: string): number {
  const [darker = 0, lighter = 0] = [luminance(a), luminance(b)].toSorted((x, y) => x - y);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
