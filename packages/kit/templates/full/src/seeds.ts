import { seed } from 'kit';
import { users } from 'kit/contrib/accounts';
import { memberships, organizations } from './organizations.ts';
import { tickets } from './tickets.ts';

/** Rows for development: `npx kit seed` creates them, and changes them back when it runs again. */
export const demo = seed('demo', async ({ put, id }) => {
  const { id: organization_id } = await put(organizations, { id: id('blue-bikes'), name: 'Blue Bikes' });
  const sue = await put(users, { id: id('sue'), username: 'sue' });
  const bob = await put(users, { id: id('bob'), username: 'bob' });
  await put(memberships, { id: id('sue-agent'), organization_id, user_id: sue.id, role: 'agent' });
  await put(memberships, { id: id('bob-member'), organization_id, user_id: bob.id, role: 'member' });
  const mine = { organization_id, author_id: bob.id };
  await put(tickets, { id: id('brakes'), ...mine, subject: 'The brakes squeak', body: 'Since Monday.', priority: 'urgent' });
  await put(tickets, { id: id('bell'), ...mine, subject: 'The bell is gone', body: 'Please send another one.', status: 'solved' });
});
