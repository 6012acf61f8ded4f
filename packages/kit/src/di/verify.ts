import type { Registration } from './registration.ts';
import type { Service } from './service.ts';
import { requireArguments } from '../options/read-options.ts';
import { aList } from '../options/value-rule.ts';

type Graph = ReadonlyMap<Service<unknown>, Registration>;

const path = (services: readonly Service<unknown>[]): string => services.map((service) => service.name).join(' → ');

function duplicates(registrations: readonly Registration[]): string[] {
  const seen = new Set<Service<unknown>>();
  const faults: string[] = [];
  for (const { service } of registrations) {
    if (seen.has(service)) faults.push(`${service.name} is provided twice. Keep one; tests replace a service with override().`);
    seen.add(service);
  }
  return faults;
}

function missing(registrations: readonly Registration[], graph: Graph): string[] {
  const namesakes = new Set(registrations.map(({ service }) => service.name));
  const faults: string[] = [];
  for (const { service, dependencies } of registrations) {
    for (const needed of Object.values(dependencies)) {
      if (graph.has(needed)) continue;
      const hint = namesakes.has(needed.name)
        ? `Another service of that name is provided: two calls of service('${needed.name}') make two different services, export one and import it.`
        : `Add singleton(${needed.name}, …), scoped(${needed.name}, …) or value(${needed.name}, …) to the services of the application.`;
      faults.push(`${service.name} needs ${needed.name}, which nothing provides. ${hint}`);
    }
  }
  return faults;
}

/** Depth-first; a service met again on its own path closes a cycle. Each cycle is named once, from its first member. */
function cycles(registrations: readonly Registration[], graph: Graph): string[] {
  const done = new Set<Service<unknown>>();
  const faults: string[] = [];
  const visit = (service: Service<unknown>, trail: readonly Service<unknown>[]): void => {
    const start = trail.indexOf(service);
    if (start >= 0) {
      faults.push(
        `${path([...trail.slice(start), service])} is a cycle: none of them can be built first. Move what they share into a service of its own.`,
      );
      return;
    }
    const registration = graph.get(service);
    if (done.has(service) || registration === undefined) return;
    for (const needed of Object.values(registration.dependencies)) visit(needed, [...trail, service]);
    done.add(service);
  };
  for (const { service } of registrations) visit(service, []);
  return faults;
}

/** A singleton that reaches a scoped service, also through transients, would keep one request's instance forever. */
function captives(registrations: readonly Registration[], graph: Graph): string[] {
  const faults: string[] = [];
  for (const registration of registrations) {
    if (registration.lifetime !== 'singleton') continue;
    const seen = new Set<Service<unknown>>();
    const visit = (current: Registration, trail: readonly Service<unknown>[]): void => {
      for (const needed of Object.values(current.dependencies)) {
        const next = graph.get(needed);
        if (next === undefined || seen.has(needed)) continue;
        seen.add(needed);
        if (next.lifetime === 'scoped') {
          faults.push(
            `${path([...trail, needed])}: ${registration.service.name} is a singleton and would keep the ${needed.name} of one request for all others. ` +
              `Make ${registration.service.name} scoped, or ${needed.name} a singleton.`,
          );
        } else if (next.lifetime === 'transient') visit(next, [...trail, needed]);
      }
    };
    visit(registration, [registration.service]);
  }
  return faults;
}

/** Every fault of the graph as a sentence, none when it can be built. Builds nothing. */
export function findServiceFaults(registrations: readonly Registration[]): string[] {
  requireArguments('findServiceFaults()', { registrations }, { registrations: aList });
  const graph = new Map(registrations.map((registration) => [registration.service, registration]));
  return [
    ...duplicates(registrations),
    ...missing(registrations, graph),
    ...cycles(registrations, graph),
    ...captives(registrations, graph),
  ];
}
