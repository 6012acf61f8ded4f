import type { AdminDeclaration } from '../../../app/admin/declaration.ts';
import type { JobCatalog } from '../job-catalog.ts';
import { jobsResource } from './jobs-resource.ts';
import { oldestReady } from '../stats-store.ts';
import { jobsOverview } from './overview.ts';
import { databaseOf, type AdminPlace } from './place.ts';

/** The admin site's list of jobs; one for each database that jobs are started in. */
export function jobsAdmin(databases: readonly string[], catalog: () => JobCatalog): AdminDeclaration {
  const places = databases.map((database, index): AdminPlace => ({
    database,
    suffix: index === 0 ? '' : `-${database.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`,
    label: index === 0 ? '' : ` (${database})`,
    catalog,
  }));
  const [first] = places;
  return {
    resources: places.map((place) => jobsResource(place)),
    ...(first === undefined
      ? {}
      : {
          overview: jobsOverview(first),
          async waiting(context) {
            const oldest = await oldestReady(databaseOf(first, context));
            return { label: 'Jobs', oldest, remedy: 'Start a worker: `kit jobs work`.' };
          },
        }),
  };
}
