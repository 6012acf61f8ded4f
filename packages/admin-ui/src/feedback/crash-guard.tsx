import { Button, Stack, Text, Title } from '@mantine/core';
import { Component, type ReactNode } from 'react';
import css from './feedback.module.css';

interface CrashGuardProps {
  /** It is something that opens over a page. */
  readonly isOver?: boolean;
  readonly children: ReactNode;
}

/** A page that cannot be drawn leaves the frame around it alone. The usual reason: the site was updated and its old files are gone. */
export class CrashGuard extends Component<CrashGuardProps, { readonly crashed: boolean }> {
  override state = { crashed: false };

  static getDerivedStateFromError(): { crashed: boolean } {
    return { crashed: true };
  }

  override render(): ReactNode {
    if (!this.state.crashed) return this.props.children;
    if (this.props.isOver === true)
      return (
        <div role="alert" className={css['over']}>
          <Text size="sm">This could not be shown. Load the page again.</Text>
          <Button size="compact-sm" onClick={() => window.location.reload()}>
            Load again
          </Button>
        </div>
      );
    return (
      <Stack gap="sm" align="start" role="alert">
        <Title order={1}>This page could not be shown</Title>
        <Text>The site may have been updated while it was open. Load it again; if that does not help, tell the operator.</Text>
        <Button onClick={() => window.location.reload()}>Load again</Button>
      </Stack>
    );
  }
}
