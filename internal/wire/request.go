package wire

import "github.com/go-relayer/relayer"

// RequestOf returns the request that creates a relayer.
func RequestOf(r *relayer.Relayer) relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: r.ID, Name: r.Name, Network: r.Network, NetworkType: r.NetworkType, Paused: r.Paused, SignerID: r.SignerID,
		NotificationID: r.NotificationID, CustomRPCURLs: r.CustomRPCURLs, Policy: r.Policy, Labels: r.Labels,
	}
}

// CheckPage returns a [*relayer.ValidationError] if the page of a query is invalid.
func CheckPage(query relayer.ListQuery) error {
	var found Problems
	if query.Page < 0 {
		found.Add("page", "must be 0 or more")
	}
	if query.PerPage < 0 {
		found.Add("per_page", "must be 0 or more")
	}
	return found.Err()
}
