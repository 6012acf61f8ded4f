import type { AdminDeclaration } from '../../../app/admin/declaration.ts';
import { deliveriesScreen } from './deliveries.ts';
import { endpointsScreen } from './endpoints.ts';
import { eventsScreen } from './events.ts';
import { webhooksOverview } from './overview.ts';
import { firstDue } from '../delivery/waiting-store.ts';
import { databaseOf, type AdminPlace } from './place.ts';

/** The admin site's lists of endpoints, deliveries and events; one set for each database that events are published in. */
export function webhooksAdmin(databases: readonly string[], eventTypes: readonly string[]): AdminDeclaration {
  const places = databases.map((database, index): AdminPlace => ({
    database,
    suffix: index === 0 ? '' : `-${database.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`,
    label: index === 0 ? '' : ` (${database})`,
    eventTypes,
  }));
  const [first] = places;
  return {
    resources: places.flatMap((place) => [endpointsScreen(place), deliveriesScreen(place), eventsScreen(place)]),
    ...(first === undefined
      ? {}
      : {
          overview: webhooksOverview(first),
          async waiting(context) {
            const due = await firstDue(databaseOf(first, context));
            const oldest = due !== null && due < context.clock.now() ? due : null;
            return { label: 'Deliveries', oldest, remedy: 'Start a worker: `kit webhooks work`.' };
          },
        }),
  };
}
