import { fastify as createFastify, type FastifyInstance } from 'fastify';
import type { Host } from '../http/host.ts';
import { UnmatchedRequests, type ServedRoutes } from '../http/serve-routes.ts';
import { requestIds } from './request-ids.ts';

/** Ids, slugs and signed cursors fit; a longer path parameter is refused with 414. */
const PARAM_LENGTH_MAX = 500;
/** A client that takes longer to send its headers and body is answered 408. */
const REQUEST_TIMEOUT_MS = 60_000;
/** By default Node looks for such clients every 30 s, so that some could take a minute and a half. */
const CONNECTIONS_CHECK_MS = 5000;

/** The app's own server. Fastify's error bodies are replaced by ours wherever Fastify has a hook for it. */
export function ownFastify(host: Host, served: ServedRoutes): FastifyInstance {
  const unmatchedRequests = new UnmatchedRequests(host, served);
  const fastify = createFastify({
    // The pipeline logs with one child per request, made only when something is logged; Fastify would make one for each request.
    logger: false,
    genReqId: requestIds(),
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: { connectionsCheckingInterval: CONNECTIONS_CHECK_MS },
    // A request on a kept-alive connection while we stop is still answered, with `Connection: close`.
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: PARAM_LENGTH_MAX },
    frameworkErrors: (error, request, reply) => unmatchedRequests.fail(request, reply, error),
    clientErrorHandler: (error, socket) => unmatchedRequests.refuseSocket(error, socket),
  });
  // Node rejects an unknown expectation with a body of its own. RFC 9110 allows a server to ignore it instead.
  fastify.server.on('checkExpectation', (request, response) => fastify.server.emit('request', request, response));
  return fastify;
}
