import type { AuditSink } from '../../auth/request/audit-sink.ts';
import type { Exchange } from './exchange.ts';

/**
 * The audit sink as a handler sees it: the actor, the request id and the tenant are those of the request unless an entry has its own. Without an audit
 * module it fails, so that a change which should be recorded does not happen unrecorded.
 */
export function requestAudit(exchange: Exchange): AuditSink {
  return {
    async record(tx, entries) {
      const { principal, requestId, knownTenant, host } = exchange;
      if (host.audit === null) throw new Error('No module records audit entries: add audit() to the modules of createApp.');
      await host.audit.record(
        tx,
        entries.map((entry) => ({ actor: principal, request_id: requestId, tenant: knownTenant, ...entry })),
      );
    },
  };
}
