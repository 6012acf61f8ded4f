import type { App } from '../app/declare/module.ts';
import type { PortalPage } from '../app/admin/portal-page.ts';
import { mountedResourceOf } from '../crud/serve/controller.ts';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';

/** The operations that a page is made of. All but the list may be missing. */
export interface PageRoutes {
  readonly controller: object;
  readonly list: CompiledRoute;
  readonly read: CompiledRoute | undefined;
  readonly create: CompiledRoute | undefined;
  readonly edit: CompiledRoute | undefined;
  readonly remove: CompiledRoute | undefined;
  readonly export: CompiledRoute | undefined;
  readonly stats: CompiledRoute | undefined;
  /** By the last part of their path. */
  readonly actions: ReadonlyMap<string, CompiledRoute>;
  /** Names of the parameters of a record's path: its own is the last. */
  readonly keys: readonly string[];
}

/**
 * The mounted operations of a page's resource, of the first controller that serves it to its owners; null where the app has none. Operations that are
 * not in the API's document are not shown either.
 */
export function routesOf(
  app: App,
  { resource, below, collection }: Pick<PortalPage, 'resource' | 'below' | 'collection'>,
): PageRoutes | null {
  for (const controller of app.controllers) {
    const mounted = mountedResourceOf(controller);
    if (mounted?.resource.name !== resource || mounted.options.audience !== undefined) continue;
    const { name } = controller.constructor;
    const own = app.routes.filter((route) => route.controller === name && !route.hidden && route.kind !== 'stream');
    const lists = own.filter(
      (route) =>
        route.method === 'GET' &&
        (collection === undefined
          ? crudOf(route)?.operation === 'list' &&
            isListPath(route.path, below?.path) &&
            (below !== undefined || crudOf(route)?.resource === resource)
          : route.path.endsWith(`/${collection}`) && !route.path.includes('/:')),
    );
    // Of several versions the last one that was mounted.
    const list = lists.at(-1);
    if (list !== undefined) return pageRoutes(controller, own, list);
  }
  return null;
}

/** What generic CRUD calls it: a controller may have routes of its own, and those of another resource. */
function crudOf({ metadata }: CompiledRoute): { readonly operation?: unknown; readonly resource?: unknown } | undefined {
  return metadata['crud'] as { readonly operation?: unknown; readonly resource?: unknown } | undefined;
}

/** `/v1/hooks`, or `/v1/hooks/:endpoint_id/deliveries` below it. */
function isListPath(path: string, below: string | undefined): boolean {
  return below === undefined ? !path.includes('/:') : new RegExp(`^[^:]*/:\\w+/${below}$`).test(path);
}

function pageRoutes(controller: object, own: readonly CompiledRoute[], list: CompiledRoute): PageRoutes {
  const record = new RegExp(`^${escaped(list.path)}/:\\w+$`);
  const onRecord = (method: string) => own.find((route) => route.method === method && record.test(route.path));
  const action = new RegExp(`^${escaped(list.path)}/:\\w+/([\\w-]+)$`);
  const actions = own.flatMap((route): [string, CompiledRoute][] => {
    const [, segment] = route.method === 'POST' ? (action.exec(route.path) ?? []) : [];
    return segment === undefined ? [] : [[segment, route]];
  });
  const read = onRecord('GET');
  const keyed = read ?? onRecord('PATCH') ?? onRecord('DELETE') ?? actions[0]?.[1];
  return {
    controller,
    list,
    read,
    create: own.find(({ method, path }) => method === 'POST' && path === list.path),
    edit: onRecord('PATCH'),
    remove: onRecord('DELETE'),
    export: own.find(({ method, path }) => method === 'GET' && path === `${list.path}/export`),
    stats: own.find(({ method, path }) => method === 'GET' && path === `${list.path}/stats`),
    actions: new Map(actions),
    keys: Array.from((keyed?.path ?? list.path).matchAll(/:(\w+)/g), ([, key]) => key as string),
  };
}

const escaped = (path: string): string => path.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
