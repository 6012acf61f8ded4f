// `npm run build:admin`: the admin site, when its sources have changed.
import { buildAdminSite } from './admin-site.ts';

await buildAdminSite((line) => console.error(line));
