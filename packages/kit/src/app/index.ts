export type { Check, CheckFault } from './check.ts';
export type { Command, CommandContext } from './command.ts';
export { readSettings, type Settings, type SettingsInput, type SettingsReading } from './config.ts';
export type { App, Module } from './module.ts';
export type { AppOptions, Controllers, VersionMount } from './options.ts';
export type { AuditEntry, AuditSink, EventPublisher, Registry, UserChangeListener } from './registry.ts';
export { checkDescriptions, type CheckDescription } from './checks.ts';
export { createApp } from './create-app.ts';
export { StartUpError } from './start-up-error.ts';
