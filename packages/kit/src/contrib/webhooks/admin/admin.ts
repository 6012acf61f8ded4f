import type { AdminDeclaration } from '../../../app/admin/declaration.ts';
import type { UserDirectory } from '../../../auth/people/user-directory.ts';
import { deliveriesResource } from './deliveries.ts';
import { endpointsResource } from './endpoints.ts';
import { eventsResource } from './events.ts';
import { webhooksOverview } from './overview.ts';
import { firstDue } from '../delivery/waiting-store.ts';
import { databaseOf, type AdminPlace } from './place.ts';

/** The admin site's lists of endpoints, deliveries and events; one set for each database that events are published in. */
export function webhooksAdmin(
  databases: readonly string[],
  users: () => UserDirectory | null,
  eventTypes: readonly string[],
): AdminDeclaration {
  const places = databases.map((database, index): AdminPlace => ({
    database,
    suffix: index === 0 ? '' : `-${database.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`,
    label: index === 0 ? '' : ` (${database})`,
    users,
    eventTypes,
  }));
  const [first] = places;
  return {
    resources: places.flatMap((place) => [endpointsResource(place), deliveriesResource(place), eventsResource(place)]),
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
