import { Button, Stack, Text, Title } from '@mantine/core';
import { Component, type ReactNode } from 'react';

/** A page that cannot be drawn leaves the frame around it alone. The usual reason: the site was updated and its old files are gone. */
export class CrashGuard extends Component<{ readonly children: ReactNode }, { readonly crashed: boolean }> {
  override state = { crashed: false };

  static getDerivedStateFromError(): { crashed: boolean } {
    return { crashed: true };
  }

  override render(): ReactNode {
    if (!this.state.crashed) return this.props.children;
    return (
      <Stack gap="sm" align="start" role="alert">
        <Title order={1}>This page could not be shown</Title>
        <Text>The site may have been updated while it was open. Load it again; if that does not help, tell the operator.</Text>
        <Button onClick={() => window.location.reload()}>Load again</Button>
      </Stack>
    );
  }
}
