import { seed } from 'kit';
import { users } from 'kit/contrib/accounts';
import { createTenant } from 'kit/contrib/tenants';
import { projects } from './projects.ts';

/** Rows for development: `npx kit seed` creates them, and changes them back when it runs again. */
export const demo = seed('demo', async ({ put, id, tx }) => {
  const ada = await put(users, { id: id('ada'), username: 'ada', email: 'ada@example.com' });
  const [found] = await tx.query<{ id: string }>('select id from tenants where slug = $1', ['acme']);
  const acme = found ?? (await createTenant(tx, { name: 'Acme', slug: 'acme', owner: ada.id }));
  await put(projects, { id: id('website'), tenant_id: acme.id, title: 'A new website' });
});
