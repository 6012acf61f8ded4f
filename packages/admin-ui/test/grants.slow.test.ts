import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { modelResource } from '../../kit/src/admin/index.ts';
import { createGroup } from '../../kit/src/contrib/accounts/index.ts';
import { actionsOf, grant, grants, objectActions, objectGrants } from '../../kit/src/contrib/grants/index.ts';
import { resource } from '../../kit/src/crud/index.ts';
import { createTable, insert, migration, model, t } from '../../kit/src/db/index.ts';
import { AdminBrowser, go, pick } from './admin-browser.ts';
import { findings } from './axe.ts';
import { NOW } from './shop/fill.ts';
import { Shop, STAFF } from './shop/shop.ts';

const recipes = model('recipes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(80) });
const recipeActions = objectActions(recipes, {
  actions: ['view', 'change', 'delete', 'share'],
  sets: { viewer: ['view'], editor: ['viewer', 'change'], manager: ['editor', 'delete', 'share'] },
});
const recipeResource = resource(recipes, { owner: 'owner_id', access: grants(recipes), admin: { rows: true } });

let shop: Shop;
let admin: AdminBrowser;
let page: Page;
let recipe: string;
let group: string;
const person = (username: string) => shop.app.users?.findByLogin(shop.db, username);

beforeAll(async () => {
  shop = await Shop.open({
    now: NOW,
    modules: [
      objectGrants({ objects: [recipeActions] }),
      {
        name: 'recipes',
        models: [recipes],
        migrations: [migration('0001_initial', [createTable('recipes', recipes.columns)])],
        admin: { resources: [modelResource(recipeResource, { singular: 'Recipe', group: 'Shop', title: 'name' })] },
      },
    ],
    resources: [recipeResource],
  });
  const owner = await shop.newUser({ username: 'margaret' });
  await shop.newUser({ username: 'theo' });
  group = (await createGroup(shop.db, { name: 'roasters', tenantKey: null })).id;
  recipe = (await insert(shop.db, recipes, { owner_id: owner.id, name: 'House blend' })).id;
  const staff = await person(STAFF);
  // Olivia may look, change and share, and not delete.
  await grant(shop.db, {
    subject: `user:${staff?.id}`,
    actions: ['view', 'change', 'share'],
    object: { type: recipes, id: recipe },
  });
  admin = await AdminBrowser.open(shop);
  page = await admin.at(`#/recipes/${recipe}`);
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
});
afterEach(() => admin.expectQuiet());

const who = () => page.getByRole('region', { name: 'Who has access, and why' });
const dialog = () => page.getByRole('dialog');
const said = (text: string | RegExp) => page.getByRole('alert').filter({ hasText: text }).first().waitFor();
const held = async (username: string) => {
  const user = await person(username);
  return user === null || user === undefined
    ? null
    : [...(await actionsOf(shop.db, { user, tenant: null }, { type: recipes, id: recipe }))].toSorted();
};

test('a record’s page says who has access, and why; access is granted and revoked there', async () => {
  await who().getByText('margaret owns this record').waitFor();
  await who().getByText('olivia was granted change, share, view on this record').waitFor();
  expect(await findings(page)).toEqual([]);

  await page.getByRole('button', { name: 'Grant access' }).click();
  await dialog().getByLabel('Set').selectOption('editor');
  expect(await findings(page)).toEqual([]);
  await dialog().getByRole('button', { name: 'Grant access' }).click();
  await dialog().getByText('Choose a user, a group or everyone.').waitFor();
  await pick(dialog(), 'User', 'the', 'theo');
  await dialog().getByRole('button', { name: 'Grant access' }).click();
  await said('Grant created.');
  await who().getByText('theo was granted editor on this record').waitFor();
  expect(await held('theo')).toEqual(['change', 'view']);

  await page.getByRole('button', { name: 'Revoke theo' }).click();
  await dialog().getByText('They lose this access with the next request.').waitFor();
  expect(await findings(page)).toEqual([]);
  await dialog().getByRole('button', { name: 'Revoke', exact: true }).click();
  await said('Grant deleted.');
  await who().getByText('theo was granted').waitFor({ state: 'detached' });
  expect(await held('theo')).toEqual([]);
});

test('a user cannot grant what they do not hold: the form stays and says so', async () => {
  await go(page, shop, `#/recipes/${recipe}`);
  await page.getByRole('button', { name: 'Grant access' }).click();
  await pick(dialog(), 'Group', 'roast', 'roasters');
  await dialog().getByLabel('Set').selectOption('manager');
  await dialog().getByRole('button', { name: 'Grant access' }).click();
  await dialog().getByText('You can only grant or revoke actions that you have.').waitFor();
  await dialog().getByLabel('Set').selectOption('viewer');
  await dialog().getByRole('button', { name: 'Grant access' }).click();
  await said('Grant created.');
  await who().getByText('the group roasters was granted viewer on this record').waitFor();
});

test('a group’s page has its members, and what it has access to', async () => {
  await go(page, shop, `#/groups/${group}`);
  const has = page.getByRole('region', { name: 'Has access to' });
  await has.getByRole('link', { name: 'recipes/House blend' }).waitFor();
  await page.getByRole('button', { name: 'Add member' }).click();
  await dialog().getByLabel('User').fill('theo');
  await page.getByRole('option', { name: 'theo' }).click();
  await dialog().getByRole('button', { name: 'Add member' }).click();
  await said('theo is a member now.');
  expect(await held('theo')).toEqual(['view']);
  expect(await findings(page)).toEqual([]);
  await page.getByRole('region', { name: 'Members' }).getByRole('link', { name: 'theo' }).click();
  await page.getByRole('heading', { name: 'theo', level: 1, exact: true }).waitFor();
  await page.getByRole('region', { name: 'Has access to' }).getByText('the group roasters').waitFor();
});
