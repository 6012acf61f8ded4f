import { runCausing } from '../../db/engine/long-statement.ts';
import { inSpan } from '../../observe/tracing.ts';
import { runActing } from '../exchange/acting-request.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handling } from '../input/handling.ts';
import type { RoutePlan } from './route-plan.ts';

export function runHandler(plan: RoutePlan, exchange: Exchange, context: Handling): unknown {
  return plan.around.length > 0 ? runAround(plan, exchange, context) : callHandler(plan, exchange, context);
}

function callHandler(plan: RoutePlan, exchange: Exchange, context: Handling): unknown {
  return exchange.isRecorded
    ? inSpan(plan.span.name, plan.span.options, () => invokeHandler(plan, exchange, context))
    : invokeHandler(plan, exchange, context);
}

function invokeHandler({ route, handler }: RoutePlan, exchange: Exchange, context: Handling): unknown {
  const { blocking, audit } = exchange.host;
  const run = () => runCausing(exchange, () => (blocking.isOn ? blocking.run(route, handler, context) : handler(context)));
  // Reads record nothing that needs an actor; entering an async context costs 3 % of a small GET.
  return audit === null || SAFE_METHODS.has(route.method) ? run() : runActing(exchange, run);
}

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'QUERY']);

function runAround(plan: RoutePlan, exchange: Exchange, context: Handling): Promise<unknown> {
  const run = async (index: number): Promise<unknown> => {
    const middleware = plan.around[index];
    if (middleware?.handle === undefined) return callHandler(plan, exchange, context);
    return middleware.handle(exchange, () => run(index + 1));
  };
  return run(0);
}
