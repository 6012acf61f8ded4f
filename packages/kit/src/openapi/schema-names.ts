import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import type { SchemaOwner } from './schema-components.ts';

/** `api_key_create` as `ApiKeyCreate`. */
export function pascalCase(text: string): string {
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** `Order` of OrderController. */
export function controllerName({ controller }: CompiledRoute): string {
  return pascalCase(controller.replace(/Controller$/, '')) || 'Api';
}

export function ownerOf(route: CompiledRoute): SchemaOwner {
  const { openapi } = route.metadata as { readonly openapi?: { readonly 'x-kit-crud'?: { readonly resource?: string } } };
  const resource = openapi?.['x-kit-crud']?.resource;
  return {
    controller: controllerName(route),
    resource: resource === undefined ? undefined : pascalCase(resource),
    operation: pascalCase(route.operationId),
  };
}

export function bodyName({ operationId }: CompiledRoute): string {
  return `${pascalCase(operationId)}Input`;
}

/** The data of the events of a live list. */
export function changeName(route: CompiledRoute): string {
  return `${controllerName(route)}Change`;
}

/** The response of `GET /:id` in ApiKeyController is an `ApiKey`, that of its `delivery = route.get('/:id/deliveries/:delivery_id')` an `ApiKeyDelivery`. */
export function responseName(route: CompiledRoute, status?: string): string {
  const isOther = status !== undefined && Number(status) !== route.status;
  const { path } = (route.route as CompiledRoute['route'] | undefined) ?? route;
  if (isOther || route.method !== 'GET' || !/\/:\w+$/.test(path)) return `${pascalCase(route.operationId)}Output${isOther ? status : ''}`;
  return /^\/:\w+$/.test(path) ? controllerName(route) : pascalCase(route.operationId);
}
