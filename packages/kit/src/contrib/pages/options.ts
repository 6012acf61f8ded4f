import { objectOf, type OptionRules, readOptions } from '../../options/read-options.ts';
import { filledText, rule } from '../../options/value-rule.ts';
import { ENGLISH, type Words } from './words.ts';

export interface PagesOptions {
  /** Where the pages are. Default: `/account`. */
  readonly prefix?: `/${string}`;
  /** Where people go after the login, unless a page has sent them: a path of this site. Default: their account page. */
  readonly home?: `/${string}`;
  /** In the heading and the browser's tab. Default: the application's title. */
  readonly title?: string;
  /** A picture in the heading: a path of this site, such as `/logo.svg`. Default: none. */
  readonly logo?: `/${string}`;
  /** The color of buttons and links. Default: that of the admin site. */
  readonly colors?: PageColors;
  /** Other sentences, by name: another language, or your own tone. Default: English. */
  readonly words?: Partial<Words>;
  /** The language of `words`, for the browser: `de`. Default: `en`. */
  readonly language?: string;
}

export interface PageColors {
  /** On light surfaces: `#3f56c4`. White text on it must be readable. */
  readonly accent?: string;
  /** On dark surfaces: `#a3b1f2`. */
  readonly accentDark?: string;
}

export interface PagesSettings {
  readonly prefix: string;
  readonly home: string | null;
  readonly title: string | null;
  readonly logo: string | null;
  readonly colors: PageColors;
  readonly words: Words;
  readonly language: string;
}

const path = rule('a path such as "/home"', (value) => typeof value === 'string' && /^\/(?![/\\])\S*$/.test(value));
const color = rule('a color such as "#3f56c4"', (value) => typeof value === 'string' && /^#[0-9a-f]{6}$/i.test(value));
const wordRules: OptionRules<Partial<Words>> = Object.fromEntries(Object.keys(ENGLISH).map((name) => [name, filledText])) as never;

const rules: OptionRules<PagesOptions> = {
  prefix: rule(
    'a path such as "/account", without a slash at its end',
    (value) => typeof value === 'string' && /^(?:\/[A-Za-z0-9._~-]+)+$/.test(value),
  ),
  home: path,
  title: filledText,
  logo: path,
  colors: objectOf<PageColors>({ accent: color, accentDark: color }),
  words: objectOf<Partial<Words>>(wordRules),
  language: rule('a language such as "de"', (value) => typeof value === 'string' && /^[a-z]{2,3}(?:-[A-Za-z0-9]+)*$/.test(value)),
};

/** Complete and frozen; every fault is reported at once. */
export function readPagesOptions(options: PagesOptions): PagesSettings {
  const given = readOptions('pages()', options, rules);
  return Object.freeze({
    prefix: given.prefix ?? '/account',
    home: given.home ?? null,
    title: given.title ?? null,
    logo: given.logo ?? null,
    colors: given.colors ?? {},
    words: { ...ENGLISH, ...given.words },
    language: given.language ?? 'en',
  });
}
