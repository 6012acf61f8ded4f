import { buildAdminSite } from '../../scripts/admin-site.ts';

/** Each project loads this file for itself; they share what is here. */
const shared = globalThis as { kitTestAdminSite?: Promise<void> };

/** Applications under test serve the admin site as users get it: built. */
export default async function setup(): Promise<void> {
  shared.kitTestAdminSite ??= buildAdminSite((line) => console.error(line));
  await shared.kitTestAdminSite;
}
