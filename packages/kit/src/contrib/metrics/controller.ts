import { Controller } from '../../http/compile/controller.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { ScrapeSource } from './scrape-server.ts';

export interface MetricsRoute {
  readonly permission: Permission;
  readonly scope: string | undefined;
}

/** `GET` on the path itself. */
export function metricsController(source: ScrapeSource, { permission, scope }: MetricsRoute): Controller {
  class KitMetricsController extends Controller {
    static override readonly tags = ['metrics'];

    read = route.get(
      '/',
      {
        response: raw('text/plain'),
        permission,
        ...(scope === undefined ? {} : { scope }),
        hidden: true,
        summary: 'The metrics of this process, for Prometheus',
      },
      async ({ reply }) => {
        reply.header('content-type', source.contentType);
        reply.header('cache-control', 'no-store');
        return source.text();
      },
    );
  }
  return new KitMetricsController();
}
