import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const source = (path: string): string => readFileSync(join(import.meta.dirname, '..', path), 'utf8');

/** The values of custom properties, in CSS or in an object of TypeScript. */
const properties = (text: string): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/'?(--[\w-]+)'?:\s*'?(#[0-9a-f]{6})/g)].map(([, name = '', value = '']) => [name, value]));

/** The text from the first place that has `start` up to the next that has `end`. */
const between = (text: string, start: string, end: string): string => {
  const from = text.indexOf(start);
  if (from === -1) throw new Error(`${start} is missing`);
  const to = text.indexOf(end, from + start.length);
  return text.slice(from, to === -1 ? undefined : to);
};

const theme = source('packages/admin-ui/src/theme.ts');
const site = { light: properties(between(theme, '  light: {', '\n  }')), dark: properties(between(theme, '  dark: {', '\n  }')) };

const names: Readonly<Record<string, string>> = {
  '--ground': '--site-page',
  '--panel': '--site-surface',
  '--text': '--mantine-color-text',
  '--quiet': '--mantine-color-dimmed',
  '--line': '--site-line',
  '--accent': '--tone-info',
  '--accent-soft': '--tone-info-soft',
  '--code': '--site-sunken',
  '--get': '--tone-good',
  '--good': '--tone-good',
  '--good-soft': '--tone-good-soft',
  '--post': '--tone-info',
  '--put': '--tone-warning',
  '--delete': '--tone-bad',
  '--warn': '--tone-warning',
  '--warn-soft': '--tone-warning-soft',
};
/** Those the admin site has no use for. */
const OWN = new Set(['--patch', '--query']);

const DARK = '@media (prefers-color-scheme: dark)';

test.each([
  ['the API reference', source('packages/kit/src/openapi/reference/reference.css')],
  ['the receiver of the example', source('examples/orders/demo/receiver-page.ts')],
])('%s has the colours of the admin site, light and dark', (_name, text) => {
  const dark = text.slice(text.indexOf(DARK));
  for (const [scheme, given] of [
    ['light', properties(between(text, ':root {', DARK))],
    ['dark', properties(between(dark, ':root {', '}'))],
  ] as const) {
    const shared = Object.keys(given).filter((name) => !OWN.has(name));
    expect(shared.length).toBeGreaterThan(6);
    const expected = shared.map((name) => [name, site[scheme][names[name] ?? '']]);
    expect(Object.fromEntries(shared.map((name) => [name, given[name]]))).toEqual(Object.fromEntries(expected));
  }
});

test('the documentation has the icon of the admin site', () => {
  expect(source('docs/site/public/favicon.svg')).toBe(source('packages/admin-ui/public/icon.svg'));
});

test('the documentation has the colours of the admin site, light and dark', () => {
  const css = source('docs/site/src/site.css');
  const light = properties(between(css, `:root[data-theme='light'] {`, '}'));
  const dark = properties(between(css, ':root {', '}'));
  const shown = (given: Record<string, string>) => ({
    text: given['--sl-color-white'],
    quiet: given['--sl-color-gray-3'],
    line: given['--sl-color-gray-5'],
    soft: given['--sl-color-accent-low'],
  });
  const expected = (given: Record<string, string>) => ({
    text: given['--mantine-color-text'],
    quiet: given['--mantine-color-dimmed'],
    line: given['--site-line'],
    soft: given['--tone-info-soft'],
  });
  expect({ light: shown(light), dark: shown(dark) }).toEqual({ light: expected(site.light), dark: expected(site.dark) });
  expect([light['--sl-color-accent'], dark['--sl-color-accent-high']]).toEqual([site.light['--tone-info'], site.dark['--tone-info']]);
  expect([light['--sl-color-black'], dark['--sl-color-black']]).toEqual([site.light['--site-surface'], site.dark['--site-page']]);
});
