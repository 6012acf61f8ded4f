import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { encode } from 'uqr';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../../../../../test/provision/chromium.ts';
import { arrived, checkLook, fill, press, said, visitor } from '../../../../../test/provision/visitor.ts';
import { type App, createApp, migrateApp } from '../../app/index.ts';
import { fakeClock, oneTimeCode } from '../../testing/index.ts';
import { AccountController, accounts, accountsOf, createUser } from '../accounts/index.ts';
import { pages } from './index.ts';

// The second factor of accounts(), from the picture for the phone's camera to the login with a recovery code.

const PASSWORD = 'correct horse battery';
const LOGIN = 'User name or e-mail address';
const folder = mkdtempSync(join(tmpdir(), 'kit-pages-'));
// A code is good for one use: the next one needs the next half minute.
const clock = fakeClock(new Date());
const HALF_A_MINUTE = 30_000;
let app: App;
let browser: Browser;
let address = '';

beforeAll(async () => {
  app = createApp({
    title: 'Orders',
    database: `sqlite:${join(folder, 'app.db')}`,
    modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 }, secureCookies: false }), pages()],
    mount: { '/v1': { '/account': AccountController } },
    clock,
    log: { level: 'silent' },
  });
  await app.openDatabases();
  await migrateApp(app);
  await app.ready();
  await createUser(app.db, { username: 'ada', email: 'ada@example.com', password: PASSWORD }, accountsOf(app.db).management(null));
  address = await app.listen({ port: 0 });
  browser = await launchChromium();
}, 300_000);
afterAll(async () => {
  await browser?.close();
  await app?.close();
  rmSync(folder, { recursive: true, force: true });
});

test.each(['light', 'dark'] as const)('a second factor, from its picture to its end (%s)', { timeout: 600_000 }, async (scheme) => {
  const complaints: string[] = [];
  const ada = await visitor(browser, complaints, scheme);
  const logIn = async () => {
    await arrived(ada, 'Log in');
    await fill(ada, LOGIN, 'ada');
    await fill(ada, 'Password', PASSWORD);
    await press(ada, 'Log in');
  };
  await ada.goto(`${address}/account/sign-in`);
  await logIn();
  await arrived(ada, 'Your account');
  await said(ada, 'Logins ask for your password only.');
  await press(ada, 'Set up one-time codes');
  const secret = (await ada.locator('[data-secret]:visible').textContent()) ?? '';
  // What the camera reads: the address of the link, as its library draws it.
  const uri = (await ada.locator('a[data-uri]').getAttribute('href')) ?? '';
  expect(uri).toContain(`secret=${secret}`);
  const { data, size } = encode(uri, { ecc: 'M', border: 2 });
  const picture = ada.getByRole('img', { name: 'QR code of the secret below' });
  expect(await picture.getAttribute('viewBox')).toBe(`0 0 ${size} ${size}`);
  const drawn = (await picture.locator('path').getAttribute('d')) ?? '';
  expect(drawn.match(/M/g)?.length).toBe(data.flat().filter(Boolean).length);
  const colors = await ada.evaluate<string[]>(
    `(({ backgroundColor, fill }) => [backgroundColor, fill])(getComputedStyle(document.querySelector('[data-picture]')))`,
  );
  // Also on a dark page: cameras want dark squares on a light ground.
  expect(colors).toEqual(['rgb(255, 255, 255)', 'rgb(0, 0, 0)']);
  await checkLook(ada, 'the picture');
  await fill(ada, 'One-time code', '000000');
  await press(ada, 'Confirm');
  await ada.locator('form#factor-confirm .fault:visible').waitFor();
  await fill(ada, 'One-time code', oneTimeCode(secret, clock.now()));
  await press(ada, 'Confirm');
  await said(ada, 'Logins ask for a one-time code.');
  expect(await picture.count()).toBe(0);
  expect(await ada.locator('[data-picture] path').getAttribute('d')).toBe(null);
  await checkLook(ada, 'the recovery codes');
  const codes = await ada.locator('[data-codes] code').allTextContents();
  expect(codes.length).toBeGreaterThan(5);

  await ada.getByRole('button', { name: 'Log out' }).click();
  await logIn();
  await ada.getByLabel('One-time code', { exact: true }).waitFor();
  await checkLook(ada, 'the login that asks for a code');
  clock.advance(HALF_A_MINUTE);
  await fill(ada, 'One-time code', oneTimeCode(secret, clock.now()));
  await press(ada, 'Log in');
  await arrived(ada, 'Your account');
  await said(ada, 'Logins ask for a one-time code.');

  // The phone is lost.
  await ada.getByRole('button', { name: 'Log out' }).click();
  await logIn();
  await fill(ada, 'One-time code', codes[0] ?? '');
  await press(ada, 'Log in');
  await arrived(ada, 'Your account');
  await press(ada, 'Remove the second factor');
  await ada.locator('dialog#sure').getByRole('button', { name: 'Continue' }).click();
  await said(ada, 'Logins ask for your password only.');
  await ada.getByRole('button', { name: 'Log out' }).click();
  await logIn();
  await arrived(ada, 'Your account');
  expect(complaints).toEqual([]);
});
