import { seed } from 'kit';
import { users } from 'kit/contrib/accounts';
import { notes } from './notes.ts';

/** Rows for development: `npx kit seed` creates them, and changes them back when it runs again. */
export const demo = seed('demo', async ({ put, id }) => {
  const ada = await put(users, { id: id('ada'), username: 'ada' });
  await put(notes, { id: id('milk'), owner_id: ada.id, title: 'Milk', pinned: true });
  await put(notes, { id: id('bread'), owner_id: ada.id, title: 'Bread' });
});
