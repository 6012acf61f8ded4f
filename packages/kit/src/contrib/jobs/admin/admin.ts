import type { AdminDeclaration } from '../../../app/admin/declaration.ts';
import type { JobCatalog } from '../declare/job-catalog.ts';
import { failuresResource } from './failures-resource.ts';
import { jobsScreen } from './jobs-screen.ts';
import { oldestReady } from '../rows/stats-store.ts';
import { jobsOverview } from './overview.ts';
import { databaseOf, type AdminPlace } from './place.ts';
import { schedulesResource } from './schedules-resource.ts';

/** The admin site's lists of jobs, of failures and of schedules; for each database that jobs are started in. */
export function jobsAdmin(databases: readonly string[], catalog: () => JobCatalog): AdminDeclaration {
  const places = databases.map((database, index): AdminPlace => ({
    database,
    suffix: index === 0 ? '' : `-${database.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`,
    label: index === 0 ? '' : ` (${database})`,
    catalog,
  }));
  const [first] = places;
  return {
    resources: places.flatMap((place) => [jobsScreen(place), failuresResource(place), schedulesResource(place)]),
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
