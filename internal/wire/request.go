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
	var problems []relayer.FieldError
	if query.Page < 0 {
		problems = append(problems, relayer.FieldError{Field: "page", Message: "must be 0 or more"})
	}
	if query.PerPage < 0 {
		problems = append(problems, relayer.FieldError{Field: "per_page", Message: "must be 0 or more"})
	}
	if problems == nil {
		return nil
	}
	return &relayer.ValidationError{Fields: problems}
}
