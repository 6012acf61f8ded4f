import { fastify as createFastify, type FastifyInstance } from 'fastify';
import type { Host } from '../../http/exchange/host.ts';
import { UnmatchedRequests, type ServedRoutes } from '../../http/serve/serve-routes.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { keepHalfClosed } from './keep-half-closed.ts';
import { requestIds } from './request-ids.ts';

/** By default Node looks for such clients every 30 s, so that some could take a minute and a half. */
const CONNECTIONS_CHECK_MS = 5000;

/** The app's own server. Fastify's error bodies are replaced by ours wherever Fastify has a hook for it. */
export function ownFastify(host: Host, served: ServedRoutes): FastifyInstance {
  const unmatchedRequests = new UnmatchedRequests(host, served);
  const fastify = createFastify({
    // The pipeline logs with one child per request, made only when something is logged; Fastify would make one for each request.
    logger: false,
    genReqId: requestIds(),
    // A client that takes longer to send its headers and body gets 408.
    requestTimeout: INPUT_LIMITS.requestMs,
    http: { connectionsCheckingInterval: CONNECTIONS_CHECK_MS },
    // A request on a kept-alive connection while we stop is still answered, with `Connection: close`.
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: INPUT_LIMITS.pathParameterLength },
    frameworkErrors: (error, request, reply) => unmatchedRequests.fail(request, reply, error),
    clientErrorHandler: (error, socket) => unmatchedRequests.refuseSocket(error, socket),
  });
  keepHalfClosed(fastify.server);
  // Node rejects an unknown expectation with a body of its own. RFC 9110 allows a server to ignore it instead.
  fastify.server.on('checkExpectation', (request, response) => fastify.server.emit('request', request, response));
  return fastify;
}
