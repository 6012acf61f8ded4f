export { command, query, type Operation, type OperationContext } from './command.ts';
export { domainEvent, type DomainEvent } from './domain-event.ts';
export { emit, EmitRefused, type EmitFault } from './emit.ts';
export { on, type EventContext, type EventHandler, type EventHandlerOptions } from './event-handler.ts';
