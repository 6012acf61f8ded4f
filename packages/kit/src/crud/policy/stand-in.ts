import type { AnyResource } from '../declare/resource.ts';

const STAND_INS = new WeakSet<AnyResource>();

/** Marks a resource that only counts in an app where no other resource declares its model. */
export function asStandIn<R extends AnyResource>(resource: R): R {
  STAND_INS.add(resource);
  return resource;
}

export function isStandIn(resource: AnyResource): boolean {
  return STAND_INS.has(resource);
}
