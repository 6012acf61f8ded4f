import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createApp } from '../../app/index.ts';
import { AccountController, accounts } from '../accounts/index.ts';
import { TenantController, tenants } from '../tenants/index.ts';
import { pages } from './index.ts';

const quiet = { database: 'sqlite::memory:', log: { level: 'silent' } } as const;
const mount = { '/v1': { '/account': AccountController } };

test('without the routes that the pages call, the app does not start and says what to mount', () => {
  expect(() => createApp({ ...quiet, modules: [pages()], mount: {} })).toThrow('Add accounts() or betterAuth() to the modules.');
  expect(() => createApp({ ...quiet, modules: [accounts(), pages()], mount: {} })).toThrow("'/account': AccountController");
  expect(() => createApp({ ...quiet, modules: [accounts(), tenants(), pages()], mount })).toThrow("'/tenants': TenantController");
});

test('a page has a strict policy, relative addresses and no inline script; what the app has no use for is 404', async () => {
  const app = createApp({
    ...quiet,
    title: 'Orders <&> more',
    modules: [
      accounts(),
      pages({ prefix: '/my/account', colors: { accent: '#0b6b4f' }, words: { signIn: '<b>Anmelden</b>' }, language: 'de' }),
    ],
    mount,
  });
  try {
    const page = await app.inject('/my/account/sign-in');
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(page.headers['content-security-policy']).not.toContain('unsafe');
    expect(page.body).toContain('<html lang="de">');
    expect(page.body).toContain('&lt;b&gt;Anmelden&lt;/b&gt;');
    expect(page.body).not.toContain('<b>');
    expect(page.body).toContain('../../v1/account');
    expect([...page.body.matchAll(/<script[^>]*>([^<]*)/g)].map(([, script]) => script?.trim())).toEqual(['']);
    for (const path of ['sign-up', 'forgot', 'tenants', 'members', 'assets/none.js'])
      expect([path, (await app.inject(`/my/account/${path}`)).statusCode]).toEqual([path, 404]);
    // What draws the picture of a second factor is served like every other file.
    expect((await app.inject('/my/account/assets/uqr.js')).body).toMatch(/export \{[^}]*\bencode\b/);
    const style = await app.inject('/my/account/assets/pages.css');
    expect(style.body).toContain('--accent: #0b6b4f');
    const { etag = '' } = style.headers;
    expect((await app.inject({ url: '/my/account/assets/pages.css', headers: { 'if-none-match': etag } })).statusCode).toBe(304);
    expect((await app.inject('/my/account?x=1')).headers['location']).toBe('./account/?x=1');
  } finally {
    await app.close();
  }
});

test('with a page for every part, accounts() and tenants() have all of them', async () => {
  const app = createApp({
    ...quiet,
    modules: [accounts(), tenants(), pages()],
    mount: { '/v1': { '/account': AccountController, '/tenants': TenantController } },
  });
  try {
    for (const path of ['', 'sign-in', 'link', 'tenants', 'members']) expect((await app.inject(`/account/${path}`)).statusCode).toBe(200);
  } finally {
    await app.close();
  }
});

test('the colours are those of the admin site', () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
  const theme = read('../../../../admin-ui/src/theme.ts');
  const [light = '', dark = ''] = theme.slice(theme.indexOf('light: {')).split('dark: {');
  const css = read('site/pages.css');
  const [ours = '', oursDark = ''] = css.split('@media');
  for (const [name, site] of [
    ['text', '--mantine-color-text'],
    ['dimmed', '--mantine-color-dimmed'],
    ['page', '--site-page'],
    ['surface', '--site-surface'],
    ['sunken', '--site-sunken'],
    ['line', '--site-line'],
    ['bad', '--tone-bad'],
    ['bad-soft', '--tone-bad-soft'],
    ['good', '--tone-good'],
    ['good-soft', '--tone-good-soft'],
    ['info', '--tone-info'],
    ['info-soft', '--tone-info-soft'],
  ] as const)
    for (const [scheme, mine] of [
      [light, ours],
      [dark, oursDark],
    ] as const)
      expect([name, new RegExp(`--${name}: (#\\w+);`).exec(mine)?.[1]]).toEqual([
        name,
        new RegExp(`'${site}': '(#\\w+)'`).exec(scheme)?.[1],
      ]);
});
