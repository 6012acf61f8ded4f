import { buildAdminSite } from '../../scripts/admin-site.ts';

/** Applications under test serve the admin site as users get it: built. */
export default async function setup(): Promise<void> {
  await buildAdminSite((line) => console.error(line));
}
